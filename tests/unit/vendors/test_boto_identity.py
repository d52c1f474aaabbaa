from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError, ProfileNotFound
from pydantic import TypeAdapter

from gateway.errors import Unavailable
from tests.cases import each_case
from vendors.boto_identity import BotoEndpoint, BotoIdentity, Keys
from vendors.boto_options import AnyIdentity, AwsIdentity
from vendors.boto_session import ProfileCredentials

AMBIENT = {
    "AWS_ACCESS_KEY_ID": "AMBIENT",
    "AWS_SECRET_ACCESS_KEY": "ambient",
    "AWS_SESSION_TOKEN": "ambient-token",
    "AWS_PROFILE": "ambient",
    "AWS_REGION": "ap-south-1",
    "AWS_DEFAULT_REGION": "ap-south-1",
    "AWS_ENDPOINT_URL": "http://ambient.example",
    "AWS_ENDPOINT_URL_STS": "http://ambient.example",
    "AWS_ENDPOINT_URL_S3": "http://ambient.example",
}
KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "secret"}}
ENDPOINT = BotoEndpoint(region="eu-west-1", path_style=False)


@pytest.fixture(autouse=True)
def ambient(monkeypatch, tmp_path):
    """Put an identity into the environment that no entry names."""
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    home = tmp_path / ".aws"
    home.mkdir()
    (home / "credentials").write_text(
        "[ambient]\naws_access_key_id = AMBIENT\naws_secret_access_key = x\n"
        "[named]\naws_access_key_id = NAMED\naws_secret_access_key = named-secret\n",
        encoding="utf-8",
    )


def identity(options: dict[str, Any], endpoint: BotoEndpoint = ENDPOINT) -> BotoIdentity:
    return BotoIdentity(identity_options(options), endpoint)


def identity_options(options: dict[str, Any]) -> AnyIdentity:
    adapter: TypeAdapter[AnyIdentity] = TypeAdapter(AwsIdentity)
    return adapter.validate_python(options)


def test_keys_are_those_of_the_entry_and_nobody_elses():
    assert identity(KEYS).keys() == Keys(access_key_id="AKIA1", secret_access_key="secret", session_token="")


def test_keys_do_not_print_their_secrets():
    assert "'secret'" not in repr(identity(KEYS).keys())


def test_keys_are_read_again_from_files_that_were_replaced(tmp_path):
    for name in ("id", "secret", "token"):
        (tmp_path / name).write_text(f"{name}-1\n", encoding="utf-8")
    found = identity(
        {
            "kind": "keys",
            "accessKeyId": {"file": str(tmp_path / "id")},
            "secretAccessKey": {"file": str(tmp_path / "secret")},
            "sessionToken": {"file": str(tmp_path / "token")},
        }
    )
    first = found.keys()
    for name in ("id", "secret", "token"):
        (tmp_path / name).write_text(f"{name}-2\n", encoding="utf-8")

    assert first == Keys(access_key_id="id-1", secret_access_key="secret-1", session_token="token-1")
    assert found.keys() == Keys(access_key_id="id-2", secret_access_key="secret-2", session_token="token-2")


def test_a_secret_that_cannot_be_read_is_an_error_and_no_other_identity(tmp_path):
    missing = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"file": str(tmp_path / "gone")}}

    with pytest.raises(FileNotFoundError):
        identity(missing).keys()


def test_a_profile_is_the_one_that_was_named():
    assert identity({"kind": "profile", "name": "named"}).keys().access_key_id == "NAMED"


def test_a_profile_comes_from_its_file_as_it_is_now(tmp_path):
    file = tmp_path / "shared"
    file.write_text("[lake]\naws_access_key_id = ONE\naws_secret_access_key = 1\n", encoding="utf-8")
    found = identity({"kind": "profile", "name": "lake", "file": str(file)})

    assert found.keys().access_key_id == "ONE"
    file.write_text("[lake]\naws_access_key_id = OTHER\naws_secret_access_key = 2\n", encoding="utf-8")
    assert found.keys().access_key_id == "OTHER"


def test_a_profile_is_loaded_again_only_when_its_file_has_changed(tmp_path, monkeypatch):
    loads: list[Any] = []
    load = ProfileCredentials.load

    def counted(credentials: ProfileCredentials) -> Any:
        loads.append(credentials)
        return load(credentials)

    monkeypatch.setattr(ProfileCredentials, "load", counted)
    file = tmp_path / "shared"
    file.write_text("[lake]\naws_access_key_id = ONE\naws_secret_access_key = 1\n", encoding="utf-8")
    found = identity({"kind": "profile", "name": "lake", "file": str(file)})

    assert [found.has_end() for _ in range(3)] == [False] * 3
    assert found.keys().access_key_id == "ONE"
    assert len(loads) == 1


def test_a_profile_that_is_not_there_is_no_other_identity(tmp_path):
    with pytest.raises((ProfileNotFound, NoCredentialsError)):
        identity({"kind": "profile", "name": "unknown"}).keys()


def test_a_profile_that_holds_nothing_is_no_other_identity(tmp_path):
    file = tmp_path / "shared"
    file.write_text("[lake]\nregion = eu-west-1\n", encoding="utf-8")

    with pytest.raises(NoCredentialsError):
        identity({"kind": "profile", "name": "lake", "file": str(file)}).keys()


def test_only_the_chain_takes_what_the_environment_holds(monkeypatch):
    found = identity({"kind": "chain"}, BotoEndpoint())

    assert found.keys().access_key_id == "AMBIENT"
    assert found.region() == "ap-south-1"


def test_the_region_is_that_of_the_entry():
    assert identity(KEYS).region() == "eu-west-1"
    assert identity(KEYS, BotoEndpoint()).region() == "us-east-1"


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("eu-west-1", "https://sts.eu-west-1.amazonaws.com"),
        ("cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn"),
        ("us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com"),
    ],
)
def test_sts_is_that_of_the_region_whatever_the_environment_says(region, url):
    assert identity(KEYS, BotoEndpoint(region=region)).sts().meta.endpoint_url == url


def test_endpoints_of_the_entry_are_used():
    found = identity(KEYS, BotoEndpoint(region="x", sts="https://sts.example", s3="https://s3.example"))

    assert found.sts().meta.endpoint_url == "https://sts.example"
    assert found.s3(found.keys()).meta.endpoint_url == "https://s3.example"


def test_calls_end_soon_and_are_tried_twice_at_most():
    config = identity(KEYS).sts().meta.config

    assert (config.connect_timeout, config.read_timeout) == (2, 5)
    assert config.retries["total_max_attempts"] == 2


@each_case(
    ("options", "is_role"),
    [
        (KEYS, False),
        ({"kind": "chain"}, False),
        ({**KEYS, "assumeRole": {"arn": "arn:aws:iam::1:role/x"}}, True),
        ({"kind": "webIdentity", "roleArn": "arn:aws:iam::1:role/x", "tokenFile": "/token"}, True),
    ],
)
def test_an_identity_tells_when_it_is_a_role_itself(options, is_role):
    assert identity_options(options).is_role is is_role


def test_nothing_is_opened_before_it_is_needed(tmp_path):
    identity({"kind": "webIdentity", "roleArn": "arn:aws:iam::1:role/x", "tokenFile": str(tmp_path / "gone")})


def test_a_token_that_cannot_be_read_is_told_once_with_its_file_and_role(tmp_path, caplog):
    token = tmp_path / "gone"
    found = identity({"kind": "webIdentity", "roleArn": "arn:aws:iam::1:role/x", "tokenFile": str(token)})
    for _ in range(2):
        with pytest.raises(Unavailable) as raised:
            found.keys()
        assert "gone" not in raised.value.message

    assert [message for message in caplog.messages if message.startswith("the gateway")] == [
        "the gateway got no session of arn:aws:iam::1:role/x for itself: "
        f"the file {token} cannot be read: No such file or directory"
    ]


def test_the_key_that_signs_is_known():
    assert identity(KEYS).key_id() == "AKIA1"
