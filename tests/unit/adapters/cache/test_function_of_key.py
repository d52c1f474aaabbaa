"""The value is a function of the key, and of nothing that the key leaves out."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.cache.issuer import CachedIssuer
from gateway.domain.credential import Credential
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from tests.fakes.shared_cache import FakeSharedCache
from tests.hypothesis_profiles import examples
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON, Replica, Time, credential, settle

SPELLINGS = ("s3://lake/a", "s3a://lake/a/", "s3n://lake/a", "s3://lake/a/b", "s3://lake/b", "gs://lake/a")
SCOPES = st.builds(
    Scope,
    location=st.sampled_from(SPELLINGS).map(parse_location),
    recipient=st.sampled_from(["ann", "bob", "ann\0bob"]),
    life=st.sampled_from([15 * MINUTE, HOUR]),
    revoked_at=st.sampled_from([None, NOON, NOON + MINUTE]),
)
SETTINGS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["lake", "pond"]),
        "vendor": st.sampled_from(["aws", "s3"]),
        "options": st.sampled_from([{}, {"role": "one"}, {"role": "two"}, {"secret": {"value": "x"}}]),
        "revoked_at": st.sampled_from([None, NOON]),
    }
)
REQUESTS = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=1),
        SETTINGS,
        SCOPES,
        st.integers(min_value=-600, max_value=1200).map(lambda seconds: timedelta(seconds=seconds)),
    ),
    min_size=1,
    max_size=25,
)


class Deterministic:
    """Its bytes are a function of all that it is given: the storage's settings and the scope."""

    def __init__(self, plan: dict[str, Any], time: Time, *, names_recipients: bool) -> None:
        self.names_recipients = names_recipients
        self._plan = sorted(plan.items())
        self._time = time

    def bytes_for(self, scope: Scope) -> str:
        location = scope.location.identity
        return repr((self._plan, location, scope.recipient, scope.life, scope.revoked_at))

    async def issue(self, scope: Scope) -> Credential:
        return credential(self.bytes_for(scope), self._time.now + scope.life)


@settings(max_examples=examples(1.5))
@given(REQUESTS, st.booleans())
def test_two_requests_that_share_a_value_would_have_minted_the_same_bytes(requests, names_recipients):
    asyncio.run(replay(requests, names_recipients=names_recipients))


async def replay(requests, *, names_recipients: bool) -> None:
    time = Time()
    redis = FakeSharedCache(time.clock)
    replicas = Replica(time, redis), Replica(time, redis)
    handed_out: dict[str, set[str]] = {}
    for number, plan, scope, pause in requests:
        provider = Deterministic(plan, time, names_recipients=names_recipients)
        issuer: CachedIssuer = replicas[number].wrap(provider, **plan)
        asked = scope if names_recipients else Scope(location=scope.location, life=scope.life)
        got = await issuer.issue(asked)
        await settle()

        assert got.id == credential(provider.bytes_for(asked), got.expires_at).id
        assert_enough_left(got.expires_at, asked, time.now)
        handed_out.setdefault(got.id, set()).add(asked.recipient)
        time.move(pause)
    # Whom a credential names, nobody else has.
    assert all(len(recipients) == 1 for recipients in handed_out.values())
    for replica in replicas:
        await replica.stop()


def assert_enough_left(expires_at: datetime, scope: Scope, now: datetime) -> None:
    assert expires_at - now >= scope.life / 2 - timedelta(seconds=1)
