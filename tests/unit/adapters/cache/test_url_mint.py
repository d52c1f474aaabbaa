from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.cache.provider import LONGEST, Provider
from gateway.adapters.cache.url_memory import Asked, Known
from gateway.adapters.cache.url_mint import UrlMint
from gateway.adapters.credential_metrics import Outcome
from gateway.adapters.url_metrics import UrlSeries
from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.errors import Internal, Unavailable, Unsupported
from gateway.ports import Signatures, SigningCost
from tests.fakes.hmac_signer import HmacSigner, is_genuine, urls_of
from tests.fakes.signer import FakeSigner
from tests.unit.adapters.cache.doubles import MINUTE, NOON, WINDOW

TABLE = parse_location("s3://lake/t")
PATHS = Paths.of(["a", "b", "c"])
ASKED = Asked(table=TABLE, paths=PATHS, window=WINDOW, place=b"p", key=b"k")
SECOND = timedelta(seconds=1)


@pytest.fixture
def series():
    return UrlSeries("lake")


@pytest.fixture
def mint_of(series, time):
    def new(signer, longest=LONGEST, **options) -> UrlMint:
        backoff = Backoff(lambda: 0.5, time.monotonic)
        provider = Provider(backoff, series.count_signing, monotonic=time.monotonic, longest=longest)
        return UrlMint(signer, provider, series=series, clock=time.clock, monotonic=time.monotonic, **options)

    return new


@pytest.fixture(params=SigningCost)
def signer(request):
    return HmacSigner(request.param)


def outcomes(series: UrlSeries) -> dict[Outcome, int]:
    return {outcome: count for outcome, count in series.signings.items() if count}


async def test_what_is_signed_is_counted_and_may_be_kept_until_the_window_ends(mint_of, signer, series):
    minted = await mint_of(signer).complete(ASKED, Known())
    assert all(is_genuine(url, NOON) for url in urls_of(PATHS, minted.value))
    assert minted.life == WINDOW.end - NOON
    assert outcomes(series) == {Outcome.MINTED: 1}


async def test_only_what_is_not_known_is_signed(mint_of, signer):
    mint = mint_of(signer)
    whole = await mint.sign(TABLE, PATHS, WINDOW)
    b = whole.signatures.split(b"\n")[1]
    signer.calls.clear()
    minted = await mint.complete(ASKED, Known(PATHS.split(), {b"b": b}, whole))
    assert signer.signed == [b"a", b"c"]
    assert minted.value == whole


async def test_when_all_is_known_nothing_is_signed(mint_of, signer):
    mint = mint_of(signer)
    whole = await mint.sign(TABLE, PATHS, WINDOW)
    by_path = dict(zip(PATHS.split(), whole.signatures.split(b"\n"), strict=True))
    signer.calls.clear()
    assert (await mint.complete(ASKED, Known(PATHS.split(), by_path, whole))).value == whole
    assert signer.calls == []


async def test_when_the_rest_does_not_go_with_what_is_known_all_is_signed(mint_of, signer):
    other = Signatures(origin="https://other/", query="", signatures=b"", expires_at=WINDOW.expires_at)
    minted = await mint_of(signer).complete(ASKED, Known(PATHS.split(), {b"b": b"x"}, other))
    assert signer.signed == [b"a", b"c", b"a", b"b", b"c"]
    assert all(is_genuine(url, NOON) for url in urls_of(PATHS, minted.value))


async def test_a_signature_too_few_is_our_fault_and_not_a_shifted_answer(mint_of):
    mint = mint_of(FakeSigner(drop=1))
    with pytest.raises(Internal):
        await mint.sign(TABLE, PATHS, WINDOW)
    with pytest.raises(Internal):
        await mint.complete(ASKED, Known(PATHS.split(), {b"b": b"x"}, None))


async def test_what_falls_short_is_handed_out_counted_and_warned_of_once(mint_of, signer, series, caplog):
    signer.ends_at = NOON + 44 * MINUTE
    mint = mint_of(signer)
    for _ in range(3):
        minted = await mint.complete(ASKED, Known())
        assert minted.value.expires_at == NOON + 44 * MINUTE
        assert minted.life is None
    assert outcomes(series) == {Outcome.SHORT: 3}
    assert caplog.text.count("the storage lake signs URLs that end in 44 minutes") == 1


async def test_what_ends_before_its_window_may_be_kept_while_enough_is_left(mint_of, signer, series, caplog):
    signer.ends_at = NOON + 48 * MINUTE
    minted = await mint_of(signer).complete(ASKED, Known())
    assert minted.life == 3 * MINUTE
    assert outcomes(series) == {Outcome.MINTED: 1}
    assert not caplog.text


async def test_what_comes_after_its_window_has_ended_is_not_short_and_not_kept(mint_of, signer, series, time):
    time.move(WINDOW.end - NOON + SECOND)
    minted = await mint_of(signer).complete(ASKED, Known())
    assert minted.life is None
    assert outcomes(series) == {Outcome.MINTED: 1}


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (Unavailable("slow down", retry_after=SECOND), Outcome.THROTTLED),
        (Unavailable("no answer"), Outcome.UNAVAILABLE),
        (Unsupported("cannot"), Outcome.REFUSED),
        (ZeroDivisionError(), Outcome.FAILED),
    ],
)
async def test_failures_are_passed_on_and_counted(mint_of, signer, series, failure, outcome):
    signer.failure = failure
    with pytest.raises(type(failure)):
        await mint_of(signer).sign(TABLE, PATHS, WINDOW)
    assert outcomes(series) == {outcome: 1}


async def test_a_page_of_calls_may_take_longer_than_a_provider_to_answer_one(mint_of):
    signer = HmacSigner(SigningCost.CALL)
    signer.seconds = 0.02
    mint = mint_of(signer, longest=timedelta(milliseconds=10))
    assert len(await mint.sign(TABLE, PATHS, WINDOW)) == 3


async def test_a_page_of_calls_that_never_ends_is_given_up(mint_of, series):
    signer = HmacSigner(SigningCost.CALL)
    signer.gate.clear()
    with pytest.raises(Unavailable, match="in time"):
        await mint_of(signer, span=timedelta(milliseconds=10)).sign(TABLE, PATHS, WINDOW)
    assert outcomes(series) == {Outcome.UNAVAILABLE: 1}


async def test_a_provider_that_throttles_calls_is_left_alone(mint_of):
    signer = HmacSigner(SigningCost.CALL)
    signer.failure = Unavailable("slow down", retry_after=MINUTE)
    mint = mint_of(signer)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await mint.sign(TABLE, PATHS, WINDOW)
    assert len(signer.calls) == 1
