from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.domain.grant import MAX_LIFE, Audience, Grant
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.principal import Principal, PrincipalKind
from gateway.domain.table import AccessMode, Table
from gateway.rpc.grant import GrantVerifier
from gateway.services.catalog.callers import Asker
from gateway.services.catalog.grant_cache import LEAST_LEFT, GrantCache
from gateway.services.catalog.grant_signer import GrantSigner
from tests.unit.services.catalog.calls import NOON, FakeClock

KEY = Ed25519PrivateKey.generate()
TABLE = Table(
    name=TableName("Share", "Schema", "Table"),
    id="table-id",
    share_id="share-id",
    location=parse_location("s3a://bucket/t"),
    auxiliary_locations=(parse_location("/x"),),
    access_modes=(AccessMode.URL, AccessMode.DIR),
    history_shared=True,
    start_version=2,
    freshness=timedelta(seconds=5),
)
ACME = Principal(name="acme", kind=PrincipalKind.RECIPIENT, shares=frozenset())
ASKER = Asker(principal=ACME, actor="lineage", edge=False)


class CountedSigner(GrantSigner):
    """A signer that remembers what it signed."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__("k1", KEY, clock)
        self.signed: list[Grant] = []

    def sign(self, grant: Grant) -> str:
        self.signed.append(grant)
        return super().sign(grant)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def signer(clock) -> CountedSigner:
    return CountedSigner(clock)


@pytest.fixture
def cache(signer, clock) -> GrantCache:
    return GrantCache(signer, clock)


def test_a_grant_says_who_may_read_what_how_and_until_when(cache, clock):
    signed = cache.find_or_sign(ASKER, TABLE, "g1", Audience.VENDING)
    grant = GrantVerifier({"k1": KEY.public_key()}, Audience.VENDING, clock).verify(signed.token)
    assert grant == Grant(
        principal="acme",
        actor="lineage",
        audience=Audience.VENDING,
        table=TABLE.name,
        table_id="table-id",
        location=TABLE.location,
        auxiliary_locations=TABLE.auxiliary_locations,
        access_modes=TABLE.access_modes,
        history_shared=True,
        start_version=2,
        freshness=timedelta(seconds=5),
        generation="g1",
        expires_at=NOON + MAX_LIFE,
    )
    assert signed.expires_at == grant.expires_at


def test_the_same_question_within_twenty_seconds_has_the_same_answer(cache, signer, clock):
    first = cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
    clock.now += timedelta(seconds=20)
    # Another object that is equal: a store may make a new one for each answer.
    assert cache.find_or_sign(ASKER, replace(TABLE), "g1", Audience.SNAPSHOT) is first
    clock.now += timedelta(microseconds=1)
    assert cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT) is not first
    assert len(signer.signed) == 2


@pytest.mark.parametrize("start", [NOON, NOON + timedelta(microseconds=999_999)])
def test_no_grant_is_served_with_less_than_forty_seconds_left_or_lives_longer_than_a_minute(
    cache, clock, start
):
    verifier = GrantVerifier({"k1": KEY.public_key()}, Audience.SNAPSHOT, clock)
    for tenth in range(700):
        clock.now = start + timedelta(milliseconds=100 * tenth)
        signed = cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
        assert LEAST_LEFT <= signed.expires_at - clock.now <= MAX_LIFE
        assert verifier.verify(signed.token).expires_at == signed.expires_at


def test_a_clock_that_is_set_back_does_not_keep_grants_from_the_future(cache, signer, clock):
    cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
    clock.now -= timedelta(hours=1)
    signed = cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
    assert signed.expires_at == clock.now + MAX_LIFE
    assert len(signer.signed) == 2


@pytest.mark.parametrize(
    ("asker", "table", "generation", "audience"),
    [
        (replace(ASKER, principal=replace(ACME, name="other")), TABLE, "g1", Audience.SNAPSHOT),
        (replace(ASKER, actor=""), TABLE, "g1", Audience.SNAPSHOT),
        (ASKER, replace(TABLE, location=parse_location("s3://bucket/moved")), "g1", Audience.SNAPSHOT),
        (ASKER, replace(TABLE, access_modes=(AccessMode.URL,)), "g1", Audience.SNAPSHOT),
        (ASKER, replace(TABLE, name=TableName("Other", "Schema", "Table")), "g1", Audience.SNAPSHOT),
        (ASKER, TABLE, "g2", Audience.SNAPSHOT),
        (ASKER, TABLE, "g1", Audience.PRESIGN),
    ],
    ids=["principal", "actor", "location", "modes", "table", "generation", "audience"],
)
def test_another_question_has_another_answer(cache, signer, asker, table, generation, audience):
    first = cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
    assert cache.find_or_sign(asker, table, generation, audience).token != first.token
    assert len(signer.signed) == 2


def test_cached_grants_beyond_the_capacity_evict_the_oldest(signer, clock):
    cache = GrantCache(signer, clock, capacity=2)
    for generation in ("g1", "g2", "g3", "g3", "g2"):
        cache.find_or_sign(ASKER, TABLE, generation, Audience.SNAPSHOT)
    assert [grant.generation for grant in signer.signed] == ["g1", "g2", "g3"]
    for generation in ("g1", "g3", "g2"):
        cache.find_or_sign(ASKER, TABLE, generation, Audience.SNAPSHOT)
    # g1 evicted g2, the oldest; g3 stayed.
    assert [grant.generation for grant in signer.signed] == ["g1", "g2", "g3", "g1", "g2"]


def test_a_signed_grant_does_not_show_its_token(cache):
    signed = cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
    assert signed.token not in repr(signed)


def test_times_are_whole_seconds(cache, clock):
    clock.now = datetime.fromisoformat("2030-01-01T12:00:00.750+00:00")
    signed = cache.find_or_sign(ASKER, TABLE, "g1", Audience.SNAPSHOT)
    assert signed.expires_at.microsecond == 0
