from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.credentials import Credentials, create_credential_resolver
from botocore.exceptions import NoCredentialsError
from botocore.httpsession import URLLib3Session
from pydantic import TypeAdapter

from vendors.boto_identity import BotoEndpoint, BotoIdentity
from vendors.boto_options import AnyIdentity, AwsIdentity, KeysOptions, ProfileOptions
from vendors.boto_session import (
    AMBIENT,
    KeysCredentials,
    ProfileCredentials,
    chain_credentials,
    chain_session,
    end_of,
    open_session,
)

ENDPOINT = BotoEndpoint(region="eu-west-1", sts="https://sts.example")
ROLE = "arn:aws:iam::123456789012:role/ambient"
# What a named profile may say of itself; all the rest of the SDK's chain is the machine's.
PROFILES = {
    *("assume-role", "assume-role-with-web-identity", "sso", "login", "custom-process"),
    *("shared-credentials-file", "config-file"),
}
MACHINE = {
    "AccessKeyId": "AMBIENT",
    "SecretAccessKey": "x",
    "Token": "x",
    "Expiration": "2099-01-01T00:00:00Z",
}


class Raw(io.BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.read()


@pytest.fixture
def machine():
    return dict(MACHINE)


@pytest.fixture
def calls(monkeypatch, machine):
    """A machine whose role is given to whoever asks for it, and the addresses that were asked."""
    asked: list[str] = []

    def send(_: URLLib3Session, request: Any) -> AWSResponse:
        asked.append(request.url)
        if request.url.endswith("/api/token"):
            return AWSResponse(request.url, 200, {}, Raw(b"token"))
        is_list = request.url.endswith("/security-credentials/")
        body = b"machine" if is_list else json.dumps({**machine, "Code": "Success"}).encode()
        return AWSResponse(request.url, 200, {}, Raw(body))

    for name in ("AWS_EC2_METADATA_DISABLED", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(URLLib3Session, "send", send)
    return asked


def in_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AMBIENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")


def in_container(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/credentials")


def in_older_container(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/credentials")


def in_file_of_ec2(monkeypatch, tmp_path):
    file = tmp_path / "ec2"
    file.write_text("AWSAccessKeyId=AMBIENT\nAWSSecretKey=x\n", encoding="utf-8")
    monkeypatch.setenv("AWS_CREDENTIAL_FILE", str(file))


def in_file_of_boto(monkeypatch, tmp_path):
    file = tmp_path / "boto"
    file.write_text(
        "[Credentials]\naws_access_key_id = AMBIENT\naws_secret_access_key = x\n", encoding="utf-8"
    )
    monkeypatch.setenv("BOTO_CONFIG", str(file))


def in_role_of_the_machine(monkeypatch, tmp_path):
    """Nothing is said: the SDK asks the machine."""


def in_token_of_the_cluster(monkeypatch, tmp_path):
    file = tmp_path / "cluster-token"
    file.write_text("token", encoding="utf-8")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)


PLACES = [
    in_environment,
    in_container,
    in_older_container,
    in_file_of_ec2,
    in_file_of_boto,
    in_role_of_the_machine,
]


@pytest.fixture
def empty_profile(tmp_path):
    file = tmp_path / "shared"
    file.write_text("[lake]\nregion = eu-west-1\n", encoding="utf-8")
    return {"kind": "profile", "name": "lake", "file": str(file)}


def opened(options: dict[str, Any]) -> BotoIdentity:
    adapter: TypeAdapter[AnyIdentity] = TypeAdapter(AwsIdentity)
    return BotoIdentity(adapter.validate_python(options), ENDPOINT)


@pytest.mark.parametrize("place", [*PLACES, in_token_of_the_cluster])
def test_profile_that_holds_nothing_is_not_what_the_machine_is(
    calls, monkeypatch, tmp_path, empty_profile, place
):
    place(monkeypatch, tmp_path)

    with pytest.raises(NoCredentialsError):
        opened(empty_profile).keys()
    assert calls == []


@pytest.mark.parametrize("place", PLACES)
def test_the_chain_finds_what_the_others_must_not(calls, monkeypatch, tmp_path, place):
    """Were the places not those that the SDK looks at, the test above would prove nothing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    place(monkeypatch, tmp_path)

    assert chain_session().get_credentials().access_key == "AMBIENT"


@pytest.mark.parametrize("place", [*PLACES, in_token_of_the_cluster])
@pytest.mark.parametrize("kind", ["keys", "webIdentity"])
def test_identity_whose_file_is_gone_is_not_what_the_machine_is(calls, monkeypatch, tmp_path, kind, place):
    gone = str(tmp_path / "gone")
    place(monkeypatch, tmp_path)
    options: dict[str, dict[str, Any]] = {
        "keys": {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"file": gone}},
        "webIdentity": {"kind": "webIdentity", "roleArn": ROLE, "tokenFile": gone},
    }

    with pytest.raises(Exception, match=r"gone|identity"):
        opened(options[kind]).keys()
    assert calls == []


def test_whatever_the_chain_of_the_sdk_has_is_known_as_the_machines_or_a_profiles():
    """A release of the SDK that looks at another place must be looked at by us first."""
    methods = {provider.METHOD for provider in create_credential_resolver(chain_session()).providers}

    assert methods == AMBIENT | PROFILES


def test_session_with_credentials_knows_no_other_source():
    resolver = open_session(Credentials("AKIA1", "secret")).get_component("credential_provider")

    assert [provider.METHOD for provider in resolver.providers] == ["sluice"]
    assert resolver.load_credentials().access_key == "AKIA1"


def test_session_without_credentials_has_none(calls, monkeypatch, tmp_path):
    in_environment(monkeypatch, tmp_path)

    assert open_session(None).get_credentials() is None
    assert calls == []


def test_profile_is_read_from_its_own_file_and_not_from_home(calls, monkeypatch, tmp_path, empty_profile):
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".aws"
    home.mkdir()
    text = "aws_access_key_id = HOME\naws_secret_access_key = x\n"
    (home / "credentials").write_text(f"[lake]\n{text}", encoding="utf-8")
    (home / "config").write_text(f"[profile lake]\n{text}", encoding="utf-8")

    with pytest.raises(NoCredentialsError):
        opened(empty_profile).keys()
    named = ProfileCredentials(ProfileOptions(kind="profile", name="lake"))
    assert named.get_frozen_credentials().access_key == "HOME"


def after(span: timedelta) -> str:
    return f"{datetime.now(UTC) + span:%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize("left", [timedelta(minutes=6), timedelta(minutes=12), timedelta(hours=6)])
def test_session_of_the_machine_ends_when_the_machine_says_so(calls, machine, monkeypatch, tmp_path, left):
    """Left to itself, the SDK puts off an end that is near."""
    monkeypatch.setenv("HOME", str(tmp_path))
    machine["Expiration"] = after(left)
    found = opened({"kind": "chain"}).new_session(timedelta(hours=1))

    assert found.keys.access_key_id == "AMBIENT"
    assert found.ends_at == datetime.fromisoformat(machine["Expiration"])


def test_session_of_the_machine_that_is_over_is_none(calls, machine, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    machine["Expiration"] = after(-timedelta(minutes=1))

    with pytest.raises(RuntimeError):
        opened({"kind": "chain"}).new_session(timedelta(hours=1))


@pytest.mark.parametrize("place", PLACES)
def test_chain_is_gone_through_anew_for_each_session(calls, machine, monkeypatch, tmp_path, place):
    monkeypatch.setenv("HOME", str(tmp_path))
    place(monkeypatch, tmp_path)
    found = opened({"kind": "chain"})
    first = found.new_session(timedelta(hours=1))
    asked = len(calls)
    second = found.new_session(timedelta(hours=1))

    assert first == second
    assert first.keys.access_key_id == "AMBIENT"
    assert first.ends_at == (datetime(2099, 1, 1, tzinfo=UTC) if asked else None)
    assert len(calls) == 2 * asked


def test_chain_that_holds_nothing_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(NoCredentialsError):
        chain_credentials()


def test_end_that_stands_in_the_environment_is_told(monkeypatch, tmp_path):
    in_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", "2099-06-01T12:00:00+02:00")

    found = opened({"kind": "chain"}).new_session(timedelta(hours=1))

    assert found.keys.session_token == "token"
    assert found.ends_at == datetime(2099, 6, 1, 10, tzinfo=UTC)


def test_profile_of_a_process_ends_when_the_process_says_so(tmp_path, monkeypatch):
    program, ends_at = tmp_path / "program.py", after(timedelta(hours=2))
    answer = {"Version": 1, "AccessKeyId": "P1", "SecretAccessKey": "s", "SessionToken": "t"}
    program.write_text(
        f"print({json.dumps(json.dumps({**answer, 'Expiration': ends_at}))})", encoding="utf-8"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    text = f"[profile lake]\ncredential_process = {sys.executable} {program}\n"
    (tmp_path / ".aws" / "config").write_text(text, encoding="utf-8")

    found = opened({"kind": "profile", "name": "lake"}).new_session(timedelta(hours=1))

    assert (found.keys.access_key_id, found.keys.session_token) == ("P1", "t")
    assert found.ends_at == datetime.fromisoformat(ends_at)


def test_keys_of_a_profile_have_no_end(tmp_path):
    file = tmp_path / "shared"
    file.write_text("[lake]\naws_access_key_id = ONE\naws_secret_access_key = 1\n", encoding="utf-8")

    found = opened({"kind": "profile", "name": "lake", "file": str(file)}).new_session(timedelta(hours=1))

    assert (found.keys.access_key_id, found.ends_at) == ("ONE", None)


def test_keys_of_the_entry_have_no_end_that_we_know():
    options = KeysOptions.model_validate(
        {
            "kind": "keys",
            "accessKeyId": "A",
            "secretAccessKey": {"value": "s"},
            "sessionToken": {"value": "t"},
        }
    )

    assert end_of(KeysCredentials(options)) is None
