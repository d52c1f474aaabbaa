from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.cache.mint import Mint
from gateway.adapters.cache.provider import Provider
from gateway.adapters.cache.rhythm import rhythm_of
from gateway.adapters.credential_metrics import Outcome, StorageSeries
from gateway.errors import Unavailable
from tests.unit.adapters.cache.doubles import HOUR, MINUTE, NOON, scope, settle

RHYTHM = rhythm_of(b"k", HOUR)


@pytest.fixture
def series():
    return StorageSeries("lake")


@pytest.fixture
def new_mint(provider, series, time):
    def new(**options):
        backoff = Backoff(lambda: 0.5, time.monotonic)
        asked = Provider(backoff, series.count_mint, monotonic=time.monotonic, **options)
        return Mint(provider, asked, storage="lake", clock=time.clock)

    return new


@pytest.fixture
def mint(new_mint):
    return new_mint()


async def test_a_fresh_credential_may_be_kept_until_it_is_of_no_use(mint, series, time):
    minted = await mint.issue(scope(), RHYTHM)
    assert (minted.value.expires_at, minted.life) == (NOON + HOUR, 55 * MINUTE)
    assert series.mints[Outcome.MINTED] == 1


async def test_what_the_provider_is_told_is_the_scope_and_nothing_else(mint, provider):
    await mint.issue(scope(), RHYTHM)
    assert provider.calls == [scope()]


async def test_a_provider_that_never_answers_does_not_hold_up_for_ever(new_mint, provider, series):
    provider.gate.clear()
    with pytest.raises(Unavailable, match="in time"):
        # By the loop's own clock, which no test can move.
        await new_mint(longest=timedelta(milliseconds=10)).issue(scope(), RHYTHM)
    assert series.mints[Outcome.UNAVAILABLE] == 1


async def test_a_mint_that_is_stopped_counts_as_failed_and_leaves_the_way_free(mint, provider, series):
    provider.gate.clear()
    task = asyncio.create_task(mint.issue(scope(), RHYTHM))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert series.mints[Outcome.FAILED] == 1
    assert mint.backoff.wait is None


async def test_a_failure_of_ours_counts_as_failed_and_is_passed_on(mint, provider, series):
    provider.failure = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await mint.issue(scope(), RHYTHM)
    assert series.mints[Outcome.FAILED] == 1
