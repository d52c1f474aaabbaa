from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    NoCredentialsError,
    ReadTimeoutError,
)
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unavailable, Unsupported
from tests.cases import each_case
from vendors.sts import RECIPIENT_TAG, SessionRequest, Sts, recipient_tags, session_name

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECRET = "s3cr3t-and-a-session-token"


class FakeClient:
    """Answers as the SDK's client does."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[dict[str, object]] = []

    def assume_role(self, **asked: object) -> object:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Metrics:
    def __init__(self) -> None:
        self.sizes: list[tuple[str, int]] = []

    def observe_policy_size(self, storage: str, percent: int) -> None:
        self.sizes.append((storage, percent))


@pytest.fixture
def threads():
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture
def ask(threads):
    async def ask(answer: object, metrics: Metrics | None = None, **request: object):
        client = FakeClient(answer)
        sts = Sts(lambda: client, threads, storage="lake", metrics=metrics)
        asked: dict[str, Any] = {"name": "acme", "policy": "{}", "life": timedelta(hours=1), **request}
        session = await sts.assume_role(SessionRequest(**asked))
        return session, client.asked

    return ask


def answer(**more: object) -> dict[str, Any]:
    credentials = {
        "AccessKeyId": "ASIA1",
        "SecretAccessKey": "secret",
        "SessionToken": "token",
        "Expiration": NOON,
    }
    return {"Credentials": credentials, **more}


def refusal(
    code: str, message: str = SECRET, status: int = 400, headers: dict[str, str] | None = None
) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers or {}},
        },
        "AssumeRole",
    )


async def test_a_session_is_asked_for_with_all_that_was_given(ask):
    _, asked = await ask(
        answer(),
        role_arn="arn:aws:iam::123456789012:role/vended",
        external_id="x-1",
        tags={"sluice:recipient": "acme"},
        policy='{"a":1}',
        life=timedelta(minutes=20),
    )

    assert asked == [
        {
            "RoleArn": "arn:aws:iam::123456789012:role/vended",
            "ExternalId": "x-1",
            "RoleSessionName": "acme",
            "Policy": '{"a":1}',
            "DurationSeconds": 1200,
            "Tags": [{"Key": "sluice:recipient", "Value": "acme"}],
        }
    ]


async def test_what_was_not_given_is_not_sent(ask):
    _, (asked,) = await ask(answer())

    assert set(asked) == {"RoleSessionName", "Policy", "DurationSeconds"}


async def test_the_expiration_is_the_providers_own_whatever_was_asked(ask):
    early = datetime(2026, 5, 1, 14, 10, tzinfo=timezone(timedelta(hours=2)))
    given_early = answer()
    given_early["Credentials"]["Expiration"] = early

    session, _ = await ask(given_early, life=timedelta(hours=12))

    assert session.expires_at == NOON + timedelta(minutes=10)


async def test_a_session_does_not_print_its_secrets(ask):
    session, _ = await ask(answer())

    assert "secret'" not in repr(session)
    assert "token'" not in repr(session)


async def test_the_size_of_the_policy_is_counted(ask):
    metrics = Metrics()

    await ask(answer(PackedPolicySize=42), metrics)

    assert metrics.sizes == [("lake", 42)]


async def test_a_store_that_reports_no_size_is_not_counted(ask):
    metrics = Metrics()

    await ask(answer(), metrics)

    assert metrics.sizes == []


async def test_a_session_whose_policy_did_not_fit_is_not_handed_out(ask):
    with pytest.raises(Unsupported, match="too long"):
        await ask(answer(PackedPolicySize=101))


@pytest.mark.parametrize(
    "error",
    [
        refusal("Throttling"),
        refusal("ThrottlingException", status=429),
        refusal("RequestLimitExceeded", status=503),
        refusal("SlowDown", status=503),
        refusal("Whatever", status=429),
    ],
)
async def test_throttling_says_when_to_come_back(ask, error):
    with pytest.raises(Unavailable) as raised:
        await ask(error)

    assert raised.value.retry_after == timedelta(seconds=1)


async def test_throttling_passes_on_what_the_service_asks_for(ask):
    with pytest.raises(Unavailable) as raised:
        await ask(refusal("Throttling", headers={"retry-after": "17"}))

    assert raised.value.retry_after == timedelta(seconds=17)


@pytest.mark.parametrize(
    "error",
    [
        refusal("AccessDenied", status=403),
        refusal("InvalidClientTokenId", status=403),
        refusal("ExpiredToken", status=403),
        refusal("ExpiredTokenException", status=400),
        refusal("SignatureDoesNotMatch", status=403),
        refusal("InvalidIdentityToken", status=400),
        refusal("", status=401),
        NoCredentialsError(),
        CredentialRetrievalError(provider="x", error_msg=SECRET),
        FileNotFoundError(2, "No such file or directory", "/etc/sluice/secret"),
    ],
)
async def test_an_identity_that_is_refused_is_ours_to_mend_and_leaks_nothing(ask, error, caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable, match="own identity") as raised:
        await ask(error)

    assert raised.value.retry_after is None
    assert len(caplog.records) == 1
    told = str(raised.value) + repr(raised.value)
    assert SECRET not in caplog.text + told
    assert "/etc" not in told
    assert "again" not in told
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


async def test_a_secret_that_cannot_be_read_is_named_in_the_log(ask, caplog):
    with pytest.raises(Unavailable):
        await ask(FileNotFoundError(2, "No such file or directory", "/etc/sluice/secret"))

    assert caplog.messages == [
        "storage lake: STS gave no session: the file /etc/sluice/secret cannot be read: "
        "No such file or directory"
    ]


@pytest.fixture
def refusing(threads):
    """Return an STS that refuses, and what asks it."""
    client = FakeClient(refusal("AccessDenied", status=403))
    sts = Sts(lambda: client, threads, storage="lake", key_id=lambda: "AKIA1")

    async def ask(role_arn: str = "") -> None:
        request = SessionRequest(role_arn=role_arn, name="acme", policy="{}", life=timedelta(hours=1))
        with suppress(Unavailable):
            await sts.assume_role(request)

    return client, ask


async def test_a_refusal_names_the_role_the_key_and_what_to_look_at(refusing, caplog):
    _, ask = refusing

    await ask("arn:aws:iam::000000000000:role/Vended")

    assert caplog.messages == [
        "storage lake: STS gave no session of arn:aws:iam::000000000000:role/Vended to the access key AKIA1: "
        "403 AccessDenied; check options.identity and options.role"
    ]


async def test_a_refusal_of_an_identity_without_keys_is_told_all_the_same(threads, caplog):
    def no_key() -> str:
        raise NoCredentialsError

    client = FakeClient(refusal("AccessDenied", status=403))
    sts = Sts(lambda: client, threads, storage="lake", key_id=no_key)
    with pytest.raises(Unavailable):
        await sts.assume_role(SessionRequest(name="acme", policy="{}", life=timedelta(hours=1)))

    assert caplog.messages == [
        "storage lake: STS gave no session: 403 AccessDenied; check options.identity and options.role"
    ]


async def test_the_same_refusal_is_told_once_until_it_changes_or_ends(refusing, caplog):
    client, ask = refusing
    for given_now in (client.answer, client.answer, refusal("Throttling"), answer(), refusal("Throttling")):
        client.answer = given_now
        await ask()

    assert [message.rpartition(": ")[2].partition(";")[0] for message in caplog.messages] == [
        "403 AccessDenied",
        "400 Throttling",
        "400 Throttling",
    ]


@pytest.mark.parametrize("code", ["PackedPolicyTooLarge", "MalformedPolicyDocument"])
async def test_a_policy_that_the_service_refuses_is_refused_for_good(ask, code):
    with pytest.raises(Unsupported):
        await ask(refusal(code))


@pytest.mark.parametrize(
    "message",
    [
        "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining",
    ],
)
async def test_a_life_that_the_role_does_not_allow_names_the_setting(ask, message):
    with pytest.raises(Unsupported, match="credentialLife"):
        await ask(refusal("ValidationError", message))


@pytest.mark.parametrize(
    "error",
    [
        refusal("RegionDisabledException", status=403),
        refusal("InternalFailure", status=500),
        refusal("ValidationError"),
        ConnectTimeoutError(endpoint_url="https://sts"),
        ReadTimeoutError(endpoint_url="https://sts"),
    ],
)
async def test_whatever_else_fails_may_be_tried_again(ask, error):
    with pytest.raises(Unavailable):
        await ask(error)


@pytest.mark.parametrize(
    "answered",
    [
        {},
        {"Credentials": {"AccessKeyId": "a"}},
        {"Credentials": {**answer()["Credentials"], "Expiration": "tomorrow"}},
        {"Credentials": {**answer()["Credentials"], "Expiration": NOON.replace(tzinfo=None)}},
    ],
)
async def test_an_answer_without_a_whole_credential_is_none(ask, answered):
    with pytest.raises(Unavailable, match="gave no credential"):
        await ask(answered)


async def test_the_client_is_opened_once_and_only_when_it_is_needed(threads):
    opened = []

    def open_client() -> FakeClient:
        opened.append(FakeClient(answer()))
        return opened[-1]

    sts = Sts(open_client, threads, storage="lake")
    assert opened == []
    for _ in range(2):
        await sts.assume_role(SessionRequest(name="acme", policy="{}", life=timedelta(hours=1)))

    assert len(opened) == 1
    assert len(opened[0].asked) == 2


@pytest.mark.parametrize("name", ["acme", "acme.eu-west@partner+1=x,y", "x" * 64])
def test_a_name_that_fits_stays_as_it_is(name):
    assert session_name(name) == name


@each_case("name", ["", "a", "acme corp", "acme/eu", "Grün", "x" * 65, "acme-0123456789ab"])
def test_a_name_that_does_not_fit_is_changed_and_marked(name):
    assert re.fullmatch(r"[\w+=,.@-]{13,64}", session_name(name), re.ASCII)
    assert re.search(r"-[0-9a-f]{12}$", session_name(name))
    assert session_name(name) != name


@given(st.text(max_size=300))
def test_every_name_becomes_one_that_sts_takes(name):
    assert re.fullmatch(r"[\w+=,.@-]{2,64}", session_name(name), re.ASCII)
    assert session_name(name) == session_name(name)


names = st.text(st.sampled_from("ab_/ -0é"), max_size=80)


@given(names, names)
def test_two_recipients_never_share_a_name_or_a_tag(one, other):
    if one != other:
        assert session_name(one) != session_name(other)
        assert recipient_tags(one) != recipient_tags(other)


@given(st.text(max_size=80))
def test_no_recipient_can_take_the_name_that_another_was_given(name):
    given_name = session_name(name)
    if given_name != name:
        assert session_name(given_name) != given_name


@given(st.text(max_size=400))
def test_every_tag_is_one_that_sts_takes(name):
    value = recipient_tags(name)[RECIPIENT_TAG]

    assert len(value) <= 256
    assert all(letter.isalnum() or letter in " _.:/=+-@" for letter in value)


async def test_storage_that_was_closed_meanwhile_is_unavailable():
    threads = ThreadPoolExecutor(1)
    sts = Sts(lambda: FakeClient({}), threads, storage="lake")
    threads.shutdown()

    with pytest.raises(Unavailable, match="being replaced"):
        await sts.assume_role(SessionRequest(name="acme", policy="{}", life=timedelta(hours=1)))
