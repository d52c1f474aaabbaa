from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import obstore
import pytest
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.domain.probe import Action, Verdict
from gateway.domain.window import Window
from gateway.errors import Unavailable
from tests.cases import each_case
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.opened_store import opened_store
from vendors.boto_identity import BotoEndpoint, BotoIdentity, Keys, OwnSession
from vendors.boto_options import AnyIdentity, AwsIdentity
from vendors.s3_access import S3Access, open_threads

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYS = {"kind": "keys", "accessKeyId": "AKIA1", "secretAccessKey": {"value": "secret"}}
HOUR = timedelta(hours=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
LAKE = parse_location("s3://lake")
ACCESS_POINT = "arn:aws:s3:eu-west-1:123456789012:accesspoint/sales"
CREDENTIAL = Credential(
    id="K1",
    secret=AwsTempCredentials(access_key_id="K1", secret_access_key="s1", session_token="t1"),
    expires_at=NOON + timedelta(hours=1),
)


@pytest.fixture(autouse=True)
def ambient(monkeypatch):
    """Put into the environment what obstore would take from there."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://ambient.example")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://ambient.example")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    monkeypatch.setenv("AWS_S3_EXPRESS", "true")


@pytest.fixture
def threads():
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture
def open_access(threads):
    def open_access(identity: dict[str, Any] = KEYS, bucket: str = "lake", **endpoint: Any) -> S3Access:
        adapter: TypeAdapter[AnyIdentity] = TypeAdapter(AwsIdentity)
        place = BotoEndpoint(**{"region": "eu-west-1", **endpoint})
        own = BotoIdentity(adapter.validate_python(identity), place)
        return S3Access(bucket, place, own, threads, lambda: NOON)

    return open_access


@each_case(
    ("endpoint", "url"),
    [
        ({"path_style": False}, "https://lake.s3.eu-west-1.amazonaws.com"),
        ({"path_style": True}, "https://s3.eu-west-1.amazonaws.com"),
        ({"region": "cn-north-1"}, "https://s3.cn-north-1.amazonaws.com.cn"),
        ({"s3": "http://minio:9000"}, "http://minio:9000"),
        ({"s3": "https://store.example", "path_style": False}, "https://lake.store.example"),
        ({"s3": "https://Store.Example:9000"}, "https://store.example:9000"),
        ({"dual_stack": True, "path_style": False}, "https://lake.s3.dualstack.eu-west-1.amazonaws.com"),
        (
            {"access_point": ACCESS_POINT, "path_style": False},
            "https://sales-123456789012.s3-accesspoint.eu-west-1.amazonaws.com",
        ),
        (
            {"access_point": ACCESS_POINT, "path_style": False, "s3": "https://accesspoint.vpce-1.example"},
            "https://sales-123456789012.accesspoint.vpce-1.example",
        ),
    ],
)
async def test_a_store_is_where_the_entry_says_and_not_the_environment(open_access, endpoint, url):
    access = open_access(**endpoint)
    config = (await opened_store(access.reader())).config
    signed = await access.signer(LAKE, FakeSessions()).sign(LAKE, Paths.of(["a"]), WINDOW)

    assert config["endpoint"] == config["endpoint_url_s3"] == url
    assert signed.origin == (f"{url}/lake/" if endpoint.get("path_style", True) else f"{url}/")
    assert f"%2F{endpoint.get('region', 'eu-west-1')}%2Fs3%2F" in signed.query
    assert config["region"] == endpoint.get("region", "eu-west-1")
    assert str(config["skip_signature"]).lower() == "false"
    assert str(config["s3_express"]).lower() == "false"
    assert (
        str(config["virtual_hosted_style_request"]).lower()
        == str(not endpoint.get("path_style", True)).lower()
    )


async def test_the_gateway_signs_with_its_own_keys_and_is_asked_for_them_again_soon(open_access):
    store = await opened_store(open_access().reader())

    assert await store.credential_provider() == {
        "access_key_id": "AKIA1",
        "secret_access_key": "secret",
        "token": None,
        "expires_at": NOON + timedelta(minutes=6),
    }


async def test_a_credential_is_used_as_it_is(open_access, monkeypatch):
    stores: list[Any] = []

    async def get(store: object, key: str) -> None:
        stores.append(store)

    monkeypatch.setattr(obstore, "get_async", get)
    await open_access().probe().attempt(CREDENTIAL, Action.READ, LAKE, "a")
    (store,) = stores

    assert await store.credential_provider() == {
        "access_key_id": "K1",
        "secret_access_key": "s1",
        "token": "t1",
        "expires_at": CREDENTIAL.expires_at,
    }


@pytest.mark.parametrize("action", Action)
async def test_a_credential_of_another_kind_is_refused(open_access, action):
    other = Credential(id="x", secret=GcpOauthToken(oauth_token="t"), expires_at=NOON)

    attempt = await open_access().probe().attempt(other, action, LAKE, "a")

    assert (attempt.verdict, attempt.detail) == (Verdict.FAILED, "Unsupported")


async def test_keys_that_cannot_be_read_are_our_fault_and_only_the_log_names_the_file(
    open_access, tmp_path, caplog
):
    missing = {**KEYS, "secretAccessKey": {"file": str(tmp_path / "gone")}}
    store = await opened_store(open_access(missing).reader())

    with pytest.raises(Unavailable, match="own identity") as raised:
        await store.credential_provider()

    assert raised.value.__suppress_context__
    assert "gone" not in raised.value.message
    assert f"the file {tmp_path / 'gone'} cannot be read: No such file or directory" in caplog.text


async def test_a_ca_file_that_cannot_be_read_is_no_missing_table(open_access, tmp_path):
    with pytest.raises(Unavailable):
        await opened_store(open_access(s3="https://store", ca_file=str(tmp_path / "gone")).reader())


def test_threads_are_closed_with_their_storage():
    with open_threads("lake") as threads:
        assert threads.submit(lambda: 1).result() == 1

    with pytest.raises(RuntimeError):
        threads.submit(lambda: 1)


class FakeIdentity:
    """Gives new sessions, or what a test has it raise."""

    is_temporary = True
    is_role = False

    def __init__(self, ends_at: datetime | None = None, error: Exception | None = None) -> None:
        self.ends_at = ends_at
        self.error = error
        self.lives: list[timedelta] = []
        self.threads: set[str] = set()

    def region(self) -> str:
        return "eu-west-1"

    def keys(self) -> Keys:
        if self.ends_at is not None:
            raise AssertionError("these may end at any moment")
        return Keys(access_key_id="AKIA", secret_access_key="hush")

    def has_end(self) -> bool:
        return self.ends_at is not None or self.error is not None

    def new_session(self, life: timedelta) -> OwnSession:
        self.lives.append(life)
        self.threads.add(threading.current_thread().name)
        if self.error is not None:
            raise self.error
        keys = Keys(access_key_id=f"ASIA{len(self.lives)}", secret_access_key="hush", session_token="token")
        return OwnSession(keys=keys, ends_at=self.ends_at)


@pytest.fixture
def open_signer():
    with ThreadPoolExecutor(1, thread_name_prefix="storage") as threads:

        def open_signer(identity: FakeIdentity, sessions: FakeSessions) -> Any:
            endpoint = BotoEndpoint(region="eu-west-1")
            own: Any = identity
            return S3Access("lake", endpoint, own, threads, lambda: NOON).signer(LAKE, sessions)

        yield open_signer


async def test_keys_of_the_entry_sign_as_they_are_now_and_ask_for_no_session(open_access, tmp_path):
    file, sessions = tmp_path / "secret", FakeSessions()
    file.write_text("one", encoding="utf-8")
    signer = open_access({**KEYS, "secretAccessKey": {"file": str(file)}}).signer(LAKE, sessions)
    first = await signer.sign(LAKE, Paths.of(["a"]), WINDOW)
    file.write_text("other", encoding="utf-8")
    second = await signer.sign(LAKE, Paths.of(["a"]), WINDOW)

    assert not signer.has_sessions
    assert sessions.minted == {}
    assert first.query == second.query
    assert first.signatures != second.signatures
    assert first.expires_at == WINDOW.expires_at


async def test_session_token_of_the_entry_is_signed_with_to_the_end_of_the_window(open_access):
    signer = open_access({**KEYS, "sessionToken": {"value": "t/1"}}).signer(LAKE, FakeSessions())

    signed = await signer.sign(LAKE, Paths.of(["a"]), WINDOW)

    assert "&X-Amz-Security-Token=t%2F1&" in signed.query
    assert signed.expires_at == WINDOW.expires_at


async def test_window_is_signed_with_one_new_session_whoever_asks(open_signer):
    identity, sessions = FakeIdentity(ends_at=NOON + 2 * HOUR), FakeSessions()
    replicas = [open_signer(identity, sessions) for _ in range(2)]
    signed = [await replica.sign(LAKE, Paths.of(["a"]), WINDOW) for replica in replicas]

    assert replicas[0].has_sessions
    assert signed[0] == signed[1]
    assert identity.lives == [HOUR]
    assert identity.threads == {"storage_0"}
    later = Window(WINDOW.end, WINDOW.end + HOUR / 4, WINDOW.end + HOUR)
    next_one = await replicas[0].sign(LAKE, Paths.of(["a"]), later)
    assert "ASIA2%2F" in next_one.query


# AT-37
@pytest.mark.parametrize(
    ("ends_at", "expires_at"),
    [
        (NOON + timedelta(minutes=30, seconds=1.5), NOON + timedelta(minutes=30, seconds=1)),
        (NOON + 2 * HOUR, NOON + HOUR),
    ],
)
async def test_url_does_not_outlive_the_session_that_signed_it(open_signer, ends_at, expires_at):
    sessions = FakeSessions()
    signed = await open_signer(FakeIdentity(ends_at), sessions).sign(LAKE, Paths.of(["a"]), WINDOW)

    assert signed.expires_at == expires_at
    assert parse_qs(signed.query)["X-Amz-Expires"] == [str(int((expires_at - NOON).total_seconds()))]
    (minted,) = sessions.minted.values()
    assert minted.expires_at == ends_at


async def test_keys_that_got_an_end_or_lost_it_are_taken_as_what_they_are_now(open_signer):
    identity, sessions = FakeIdentity(ends_at=NOON + 2 * HOUR), FakeSessions()
    signer = open_signer(identity, sessions)
    first = await signer.sign(LAKE, Paths.of(["a"]), WINDOW)
    identity.ends_at = None
    second = await signer.sign(LAKE, Paths.of(["a"]), WINDOW)

    assert "X-Amz-Credential=ASIA1%2F" in first.query
    assert "X-Amz-Credential=AKIA%2F" in second.query
    assert [minted.id for minted in sessions.minted.values()] == ["ASIA1"]


async def test_keys_that_lose_their_end_while_they_are_asked_for_are_not_shared(open_signer, monkeypatch):
    identity, sessions = FakeIdentity(ends_at=None), FakeSessions()
    monkeypatch.setattr(identity, "has_end", lambda: True)

    with pytest.raises(Unavailable, match="just been replaced"):
        await open_signer(identity, sessions).sign(LAKE, Paths.of(["a"]), WINDOW)
    assert sessions.minted == {}


async def test_keys_without_an_end_sign_and_are_given_to_no_other_replica(open_signer):
    sessions = FakeSessions()
    signed = await open_signer(FakeIdentity(ends_at=None), sessions).sign(LAKE, Paths.of(["a"]), WINDOW)

    assert "X-Amz-Credential=AKIA%2F" in signed.query
    assert signed.expires_at == WINDOW.expires_at
    assert sessions.minted == {}


@pytest.mark.parametrize(
    "error",
    [
        ClientError(
            {
                "Error": {"Code": "AccessDenied", "Message": "token-of-ours"},
                "ResponseMetadata": {"HTTPStatusCode": 403},
            },
            "AssumeRole",
        ),
        BotoCoreError(),
        OSError("token-of-ours"),
        KeyError("token-of-ours"),
        RuntimeError("token-of-ours"),
        Unavailable("the storage does not accept the gateway's own identity"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_session_that_is_not_given_is_our_fault_and_repeats_nothing(open_signer, caplog, error):
    signer = open_signer(FakeIdentity(error=error), FakeSessions())
    for _ in range(3):
        with pytest.raises(Unavailable) as raised:
            await signer.sign(LAKE, Paths.of(["a"]), WINDOW)

    assert "token-of-ours" not in str(raised.value) + caplog.text
    assert raised.value.__cause__ is None
    # However many ask.
    assert len(caplog.messages) <= 1


async def test_storage_that_was_closed_meanwhile_says_so(open_access, threads):
    access = open_access()
    signer = access.signer(LAKE, FakeSessions())
    threads.shutdown()

    with pytest.raises(Unavailable, match="being replaced"):
        await signer.sign(LAKE, Paths.of(["a"]), WINDOW)
