"""Signatures are a function of their key, and of nothing that the key leaves out."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.cache.key import paths_key, place_key, session_key
from gateway.domain.file_path import Paths
from gateway.domain.location import Location, parse_location
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.ports import Signatures, SigningCost
from tests.fakes.shared_cache import FakeSharedCache
from tests.hypothesis_profiles import examples
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON, Replica, Time, settle

LOCATIONS = [
    parse_location(text) for text in ("s3://lake/a", "s3a://lake/a/", "s3://lake/a/b", "gs://lake/a")
]
NAMES = st.lists(st.sampled_from(["a", "b", "a/b", "a%20b", "c" * 40]), min_size=1, max_size=4)
PATHS = st.builds(
    lambda names, is_segment: Paths("\n".join(names).encode(), is_segment), NAMES, st.booleans()
)
WINDOWS = st.builds(
    lambda minutes, life: window_at(NOON + minutes * MINUTE, life, URL_PARTS, b"k"),
    st.integers(0, 60),
    st.sampled_from([20 * MINUTE, HOUR]),
)
KEY_PARTS = st.tuples(
    st.binary(max_size=3), st.binary(max_size=3), st.sampled_from(LOCATIONS), WINDOWS, PATHS
)
SETTINGS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["lake", "pond"]),
        "options": st.sampled_from([{}, {"secret": "one"}, {"secret": "two"}]),
        "revoked_at": st.sampled_from([None, NOON]),
    }
)
REQUESTS = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=2),
        SETTINGS,
        st.sampled_from(LOCATIONS),
        PATHS,
        st.integers(min_value=-600, max_value=1200).map(lambda seconds: timedelta(seconds=seconds)),
    ),
    min_size=1,
    max_size=25,
)


def key_of(fingerprint: bytes, base: bytes, location: Location, window: Window, paths: Paths) -> bytes:
    return paths_key(place_key(fingerprint, base, location, window), hashlib.sha256(paths.joined).digest())


def meaning(fingerprint: bytes, base: bytes, location: Location, window: Window, paths: Paths) -> object:
    # Two spellings of a location are one, and it makes no difference what is asked for time and again.
    return fingerprint, base, location.identity, window, paths.joined


@settings(max_examples=examples(10))
@given(KEY_PARTS, KEY_PARTS)
def test_at_33_another_input_is_another_key(one, other):
    assert (key_of(*one) == key_of(*other)) == (meaning(*one) == meaning(*other))


@given(KEY_PARTS, st.integers(0, 6))
def test_at_33_any_one_input_that_changes_changes_the_key(parts, which):
    fingerprint, base, location, window, paths = parts
    second = timedelta(seconds=1)
    changed = [
        (fingerprint + b"x", base, location, window, paths),
        (fingerprint, base + b"x", location, window, paths),
        (fingerprint, base, parse_location("s3://lake/other"), window, paths),
        (fingerprint, base, location, Window(window.start - second, window.end, window.expires_at), paths),
        (fingerprint, base, location, Window(window.start, window.end + second, window.expires_at), paths),
        (fingerprint, base, location, Window(window.start, window.end, window.expires_at - second), paths),
        (fingerprint, base, location, window, Paths(paths.joined + b"x")),
    ]
    assert key_of(*changed[which]) != key_of(*parts)


@given(st.binary(max_size=3), st.binary(max_size=3), WINDOWS, WINDOWS)
def test_at_33_sessions_are_known_by_settings_and_window(one, other, window, another):
    is_same = (one, window) == (other, another)
    assert (session_key(one, window) == session_key(other, another)) == is_same


class Deterministic:
    """Its bytes are a function of all that it is given: the storage's settings and the request."""

    has_sessions = False

    def __init__(self, plan: dict[str, Any], base: str, cost: SigningCost) -> None:
        self.cost = cost
        self._seed = repr((sorted(plan.items()), base))

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        seed = f"{self._seed}{table.identity}{window}"
        signatures = (hashlib.sha256(seed.encode() + path).hexdigest() for path in paths.split())
        return Signatures(
            origin=f"https://{hashlib.sha256(seed.encode()).hexdigest()}/",
            query="sig=",
            signatures="\n".join(signatures).encode(),
            expires_at=window.expires_at,
        )


@settings(max_examples=examples(1.5))
@given(REQUESTS, st.sampled_from(SigningCost))
def test_at_33_what_is_served_is_what_would_have_been_signed(requests, cost):
    asyncio.run(replay(requests, cost))


async def replay(requests, cost: SigningCost) -> None:
    time = Time()
    redis = FakeSharedCache(time.clock)
    bases = "https://one.example", "https://one.example", "https://two.example"
    replicas = [Replica(time, redis, public_url=base, urls={"redis": "always"}) for base in bases]
    for number, plan, table, paths, pause in requests:
        vendor = Deterministic(plan, bases[number], cost)
        window = window_at(time.now, HOUR, URL_PARTS, "\n".join(table.identity).encode())
        signer = replicas[number].signer(vendor, **plan)
        got = await signer.sign(table, paths, window)
        await settle()
        assert got == await vendor.sign(table, paths, window)
        assert got.expires_at - time.now >= 45 * MINUTE
        time.move(pause)
    for replica in replicas:
        await replica.stop()
