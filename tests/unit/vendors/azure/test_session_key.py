from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.credential import AzureDelegationKey, AzureUserDelegationSas, Credential
from gateway.domain.window import Window
from gateway.errors import Internal, Unavailable
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.azure.doubles import NOON, SECRET, delegation_key
from vendors.azure.session_key import SessionKeys, pack, unpack

HOUR = timedelta(hours=1)
KEY = delegation_key()
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
NEXT = Window(NOON + HOUR / 4, NOON + HOUR / 2, NOON + 5 * HOUR / 4)


def asking(key=KEY):
    asked = []

    async def ask(start, end):
        asked.append((start, end))
        return key

    return asked, ask


async def test_key_of_a_window_is_asked_for_once_and_by_its_times_only():
    asked, ask = asking()
    keys = SessionKeys(FakeSessions(), ask)
    for _ in range(5):
        assert await keys.get(WINDOW) == KEY

    assert asked == [(NOON, NOON + HOUR + timedelta(minutes=1))]


async def test_next_window_has_another_key():
    asked, ask = asking()
    keys = SessionKeys(FakeSessions(), ask)
    for window in (WINDOW, NEXT, WINDOW):
        await keys.get(window)

    assert [start for start, _ in asked] == [WINDOW.start, NEXT.start]


async def test_replicas_share_what_one_of_them_asked_for():
    sessions, (asked, ask) = FakeSessions(), asking()
    first, second = SessionKeys(sessions, ask), SessionKeys(sessions, ask)

    assert await first.get(WINDOW) == await second.get(WINDOW)
    assert len(asked) == 1


async def test_failure_is_passed_on_and_nothing_kept_of_it():
    sessions = FakeSessions()

    async def refuse(start, end):
        raise Unavailable("not now", retry_after=timedelta(seconds=7))

    with pytest.raises(Unavailable) as raised:
        await SessionKeys(sessions, refuse).get(WINDOW)

    assert raised.value.retry_after == timedelta(seconds=7)
    assert sessions.minted == {}


def test_key_is_the_same_after_it_was_passed_on():
    credential = pack(KEY)

    assert unpack(credential) == KEY
    # AT-36
    assert credential.expires_at == KEY.expires_at
    assert isinstance(credential.secret, AzureDelegationKey)
    assert credential.secret.expiry == KEY.expiry


def test_name_of_a_key_tells_keys_apart_and_shows_nothing_of_them():
    credential = pack(KEY)

    assert credential.id.startswith("key-")
    assert "AAEC" not in repr(credential)
    assert repr(SECRET) not in repr(credential)


def test_what_is_no_delegation_key_is_not_signed_with():
    credential = Credential(
        id="sas-1", secret=AzureUserDelegationSas(sas_token="sv=1"), expires_at=NOON + HOUR
    )
    with pytest.raises(Internal):
        unpack(credential)
