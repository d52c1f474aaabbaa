from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from pydantic import TypeAdapter

from gateway.errors import Unavailable
from vendors.boto_identity import BotoEndpoint, BotoIdentity
from vendors.boto_options import AnyIdentity, AwsIdentity

ROLE = "arn:aws:iam::123456789012:role/gateway"
ENDPOINT = BotoEndpoint(region="eu-west-1", sts="https://sts.example")
KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "secret"}}
ANSWER = """<{call}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{call}Result><Credentials>
<AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>secret-{number}</SecretAccessKey>
<SessionToken>session-{number}</SessionToken><Expiration>{expiration}</Expiration>
</Credentials></{call}Result></{call}Response>"""
REFUSAL = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"""
TOO_LONG = "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."


class Raw(io.BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.read()


@dataclass
class FakeSts:
    """Answers below the SDK's client, with sessions of a life that a test chooses."""

    life: timedelta = timedelta(hours=1)
    refuses: bool = False
    # What is asked for is given, up to this.
    longest: timedelta | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    signed_by: list[str] = field(default_factory=list)

    def send(self, request: Any) -> AWSResponse:
        assert request.url == "https://sts.example/"
        body = request.body if isinstance(request.body, (bytes, str)) else urlencode(request.body)
        text = body.decode() if isinstance(body, bytes) else body
        form = {name: values[0] for name, values in parse_qs(text).items()}
        self.asked.append(form)
        signature = request.headers.get("Authorization", b"")
        self.signed_by.append(signature.decode() if isinstance(signature, bytes) else signature)
        if self.refuses:
            return _refusal(request.url, 403, "AccessDenied", "no session-of-mine")
        life = self.life
        if self.longest is not None:
            life = timedelta(seconds=int(form["DurationSeconds"]))
            if life > self.longest:
                return _refusal(request.url, 400, "ValidationError", TOO_LONG)
        expiration = f"{datetime.now(UTC) + life:%Y-%m-%dT%H:%M:%SZ}"
        answer = ANSWER.format(call=form["Action"], number=len(self.asked), expiration=expiration)
        return AWSResponse(request.url, 200, {}, Raw(answer.encode()))


@pytest.fixture
def sts(monkeypatch):
    fake = FakeSts()
    monkeypatch.setattr(URLLib3Session, "send", lambda _, request: fake.send(request))
    return fake


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "token"
    file.write_text("token-1\n", encoding="utf-8")
    return file


@pytest.fixture(params=["webIdentity", "assumeRole"])
def identity(request, token_file):
    if request.param == "webIdentity":
        return opened({"kind": "webIdentity", "roleArn": ROLE, "tokenFile": str(token_file)})
    return opened({**KEYS, "assumeRole": {"arn": ROLE}})


def opened(options: dict[str, Any]) -> BotoIdentity:
    adapter: TypeAdapter[AnyIdentity] = TypeAdapter(AwsIdentity)
    return BotoIdentity(adapter.validate_python(options), ENDPOINT)


def test_session_with_time_left_is_used_again(sts, identity):
    names = [identity.keys().access_key_id for _ in range(3)]

    assert names == ["ASIA1"] * 3
    assert len(sts.asked) == 1


def test_session_is_replaced_well_before_it_ends(sts, identity):
    sts.life = timedelta(minutes=10)
    first = identity.keys()
    sts.life = timedelta(hours=1)
    second = identity.keys()

    assert (first.access_key_id, first.secret_access_key, first.session_token) == (
        "ASIA1",
        "secret-1",
        "session-1",
    )
    assert second.access_key_id == "ASIA2"
    assert identity.keys() == second
    assert len(sts.asked) == 2


def test_clients_that_are_open_already_sign_by_the_new_session(sts, identity):
    sts.life = timedelta(minutes=10)
    client = identity.sts()
    client.assume_role(RoleArn=ROLE, RoleSessionName="recipient")
    client.assume_role(RoleArn=ROLE, RoleSessionName="recipient")

    # Each call is preceded by one for the session that it is signed by.
    signers = [text for form, text in zip(sts.asked, sts.signed_by, strict=True) if _is_vended(form)]
    assert ["ASIA1/" in signers[0], "ASIA3/" in signers[1]] == [True, True]


def test_session_that_cannot_be_replaced_is_used_while_it_lasts(sts, identity):
    sts.life = timedelta(minutes=12)
    first = identity.keys()
    sts.refuses = True

    assert identity.keys() == first
    assert len(sts.asked) == 2


def test_session_that_is_nearly_over_and_cannot_be_replaced_is_not_used(sts, identity):
    sts.life = timedelta(minutes=5)
    identity.keys()
    sts.refuses = True

    with pytest.raises(Unavailable):
        identity.keys()


def test_token_is_read_again_for_each_session(sts, token_file):
    sts.life = timedelta(minutes=10)
    identity = opened({"kind": "webIdentity", "roleArn": ROLE, "tokenFile": str(token_file)})

    identity.keys()
    token_file.write_text("token-2\n", encoding="utf-8")
    identity.keys()

    assert [form["Action"] for form in sts.asked] == ["AssumeRoleWithWebIdentity"] * 2
    assert [form["WebIdentityToken"] for form in sts.asked] == ["token-1", "token-2"]
    # Nobody but the token says who is asking.
    assert sts.signed_by == ["", ""]


def test_role_is_assumed_again_by_keys_as_they_are_then(sts, tmp_path):
    sts.life = timedelta(minutes=10)
    file = tmp_path / "secret"
    file.write_text("secret-1", encoding="utf-8")
    role = {"arn": ROLE, "externalId": "gateway-7"}
    identity = opened({**KEYS, "secretAccessKey": {"file": str(file)}, "assumeRole": role})

    identity.keys()
    file.unlink()

    with pytest.raises(Unavailable):
        identity.keys()
    assert [form["ExternalId"] for form in sts.asked] == ["gateway-7"]
    assert "Credential=AKIA1/" in sts.signed_by[0]


@pytest.mark.parametrize(
    ("life", "longest", "asked"),
    [
        # Every role gives an hour: more than is needed does no harm.
        (timedelta(minutes=5), timedelta(hours=1), [3600]),
        (timedelta(hours=1), timedelta(hours=1), [3600]),
        (timedelta(hours=6), timedelta(hours=12), [21600]),
        (timedelta(days=7), timedelta(hours=12), [43200]),
        (timedelta(hours=6), timedelta(hours=1), [21600, 3600]),
    ],
)
def test_new_session_lasts_as_long_as_is_asked_for_or_as_its_role_allows(sts, identity, life, longest, asked):
    sts.longest = longest
    session = identity.new_session(life)

    assert [int(form["DurationSeconds"]) for form in sts.asked] == asked
    assert abs(session.ends_at - datetime.now(UTC) - timedelta(seconds=asked[-1])) < timedelta(minutes=1)


def test_new_session_is_another_one_each_time_and_leaves_the_own_one_alone(sts, identity):
    own = identity.keys()
    names = [identity.new_session(timedelta(hours=1)).keys.access_key_id for _ in range(2)]

    assert names == ["ASIA2", "ASIA3"]
    assert identity.keys() == own


def test_role_on_top_of_a_role_is_asked_for_an_hour_at_once(sts, token_file):
    sts.longest = timedelta(hours=12)
    identity = opened(
        {"kind": "webIdentity", "roleArn": ROLE, "tokenFile": str(token_file), "assumeRole": {"arn": ROLE}}
    )
    identity.new_session(timedelta(hours=6))
    identity.new_session(timedelta(hours=6))

    assert [(form["Action"], form["DurationSeconds"]) for form in sts.asked] == [
        ("AssumeRoleWithWebIdentity", "3600"),
        ("AssumeRole", "3600"),
        ("AssumeRole", "3600"),
    ]


def test_new_session_that_is_refused_is_asked_for_once(sts, identity):
    sts.refuses = True
    with pytest.raises(ClientError):
        identity.new_session(timedelta(hours=6))

    assert len(sts.asked) == 1


def test_new_session_does_not_print_its_secrets(sts, identity):
    assert "secret-1" not in repr(identity.new_session(timedelta(hours=1)))
    assert "session-1" not in repr(identity.new_session(timedelta(hours=1)))


def _refusal(url: str, status: int, code: str, message: str) -> AWSResponse:
    return AWSResponse(url, status, {}, Raw(REFUSAL.format(code=code, message=message).encode()))


def _is_vended(form: dict[str, str]) -> bool:
    return form["RoleSessionName"] == "recipient"
