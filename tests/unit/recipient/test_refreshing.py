from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest
from sluice_recipient.credential import Credential, GcpToken
from sluice_recipient.errors import Unavailable
from sluice_recipient.refreshing import PAUSE, Refreshing

from tests.fakes.recipient_transport import NOON

HOUR = timedelta(hours=1)


class Source:
    """Numbered credentials that live for an hour from the moment at which they were fetched."""

    def __init__(self, life: timedelta = HOUR) -> None:
        self.now = NOON
        self.fetched = 0
        self.failure: Exception | None = None
        self._life = life

    def clock(self) -> datetime:
        return self.now

    def fetch(self) -> Credential:
        if self.failure is not None:
            raise self.failure
        self.fetched += 1
        return Credential(
            location="gs://lake/orders",
            secret=GcpToken(oauth_token=str(self.fetched)),
            expires_at=self.now + self._life,
        )


def _number(credential: Credential) -> int:
    assert isinstance(credential.secret, GcpToken)
    return int(credential.secret.oauth_token)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def refreshing(source) -> Refreshing[Credential]:
    return Refreshing(source.fetch, source.clock)


def test_nothing_is_fetched_before_it_is_asked_for(source, refreshing):
    assert source.fetched == 0


def test_a_credential_is_kept(source, refreshing):
    assert _number(refreshing.current()) == _number(refreshing.current()) == 1
    source.now += timedelta(minutes=44)
    assert _number(refreshing.current()) == 1


def test_it_is_renewed_a_quarter_of_an_hour_ahead(source, refreshing):
    refreshing.current()
    source.now += timedelta(minutes=45)

    assert _number(refreshing.current()) == 2


def test_a_short_one_is_renewed_at_half_its_life():
    source = Source(life=timedelta(minutes=10))
    refreshing = Refreshing(source.fetch, source.clock)
    refreshing.current()

    source.now += timedelta(minutes=4, seconds=59)
    assert _number(refreshing.current()) == 1
    source.now += timedelta(seconds=1)
    assert _number(refreshing.current()) == 2


def test_a_failed_renewal_leaves_the_old_one_in_use(source, refreshing):
    refreshing.current()
    source.now += timedelta(minutes=50)
    source.failure = Unavailable("made up")

    assert _number(refreshing.current()) == 1
    source.failure = None
    assert _number(refreshing.current()) == 1
    source.now += PAUSE
    assert _number(refreshing.current()) == 2


def test_a_failure_is_raised_when_the_old_one_has_expired(source, refreshing):
    refreshing.current()
    source.now += HOUR
    source.failure = Unavailable("made up")

    with pytest.raises(Unavailable, match="made up"):
        refreshing.current()


def test_an_expired_credential_is_never_handed_out():
    source = Source(life=timedelta(0))

    with pytest.raises(Unavailable, match="clock"):
        Refreshing(source.fetch, source.clock).current()


def test_the_first_may_be_given(source):
    refreshing = Refreshing(source.fetch, source.clock, first=source.fetch())

    assert (_number(refreshing.current()), source.fetched) == (1, 1)
    source.now += timedelta(minutes=45)
    assert _number(refreshing.current()) == 2


def test_one_that_was_refused_before_its_time_is_replaced(source, refreshing):
    refused = refreshing.current()

    assert _number(refreshing.instead_of(refused)) == 2
    assert _number(refreshing.current()) == 2


def test_all_who_were_refused_the_same_one_get_the_same_next_one(source, refreshing):
    refused = refreshing.current()

    assert {_number(refreshing.instead_of(refused)) for _ in range(5)} == {2}
    assert source.fetched == 2


def test_callers_at_once_fetch_once(source: Source):
    entered, release = threading.Event(), threading.Event()

    def fetch() -> Credential:
        entered.set()
        assert release.wait(60)
        return source.fetch()

    refreshing = Refreshing(fetch, source.clock)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(_number(refreshing.current()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert entered.wait(60)
    release.set()
    for thread in threads:
        thread.join()

    assert found == [1] * 8
    assert source.fetched == 1


def test_while_one_caller_renews_it_the_others_do_not_wait(source: Source):
    entered, release = threading.Event(), threading.Event()
    slow = False

    def fetch() -> Credential:
        if slow:
            entered.set()
            assert release.wait(60)
        return source.fetch()

    refreshing = Refreshing(fetch, source.clock)
    refreshing.current()
    source.now += timedelta(minutes=50)
    slow = True
    renewing = threading.Thread(target=refreshing.current)
    renewing.start()
    assert entered.wait(60)

    assert _number(refreshing.current()) == 1
    release.set()
    renewing.join()
    assert _number(refreshing.current()) == 2
