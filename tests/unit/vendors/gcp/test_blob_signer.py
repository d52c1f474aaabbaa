from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.domain.window import URL_PARTS, window_at
from gateway.errors import Unavailable, Unsupported
from gateway.ports import SigningCost
from tests.unit.vendors.gcp.google import NOON, SHARER
from tests.unit.vendors.gcp.iam import FakeIam, blob_signature, refusal
from tests.unit.vendors.gcp.signed import HOUR, PLACE, WINDOW, read, spliced, urls_of, window_of
from vendors.gcp.blob_signer import BlobSigner

TABLE = parse_location("gs://lake/sales/orders")


@pytest.fixture
def iam():
    return FakeIam()


@pytest.fixture
def signer(iam):
    return BlobSigner(blobs=iam.client(), place=PLACE)


async def test_google_signs_what_it_will_look_for_in_the_url(iam, signer):
    (url,) = await urls_of(signer, TABLE, "date=2021-04-28/part 0+é%20.parquet")

    assert iam.messages == [read(url).message]
    assert read(url).signature == blob_signature(read(url).message)
    assert read(url).signer == SHARER
    assert "X-Goog-Algorithm=GOOG4-RSA-SHA256&" in url


@pytest.mark.parametrize("count", [0, 1, 2, 100, 101, 350])
async def test_each_path_gets_its_own_signature_in_order(iam, signer, count):
    urls = await urls_of(signer, TABLE, *(f"part-{number}" for number in range(count)))

    assert len(urls) == count
    assert all(read(url).signature == blob_signature(read(url).message) for url in urls)
    assert all(f"/part-{number}?" in url for number, url in enumerate(urls))


async def test_file_that_is_named_twice_is_asked_for_once(iam, signer):
    urls = await urls_of(signer, TABLE, "a", "b", "a", "c", "b", "a")

    assert len(iam.messages) == len(set(iam.messages)) == 3
    assert urls == await urls_of(signer, TABLE, "a", "b", "a", "c", "b", "a")
    assert all(read(url).signature == blob_signature(read(url).message) for url in urls)


@pytest.mark.parametrize("spoilt", [range(0, 40, 2), range(20), [39]])
async def test_partial_failure_never_shifts_signatures(iam, signer, spoilt):
    iam.spoilt = {number: refusal(503, "UNAVAILABLE") for number in spoilt}

    urls = await urls_of(signer, TABLE, *map(str, range(40)))

    assert all(read(url).signature == blob_signature(read(url).message) for url in urls)


async def test_partial_refusal_gives_no_urls(iam, signer):
    iam.spoilt = {7: refusal(403, "PERMISSION_DENIED")}

    with pytest.raises(Unavailable):
        await urls_of(signer, TABLE, *map(str, range(40)))


async def test_expiration_is_the_windows_up_to_twelve_hours(signer):
    for life, lives in ((HOUR, HOUR), (HOUR * 12, HOUR * 12), (HOUR * 20, HOUR * 12)):
        paths = Paths.of(["a"])
        signed = await signer.sign(TABLE, paths, window_of(life))
        (url,) = spliced(signed, paths)

        assert signed.expires_at == NOON + lives
        assert f"&X-Goog-Expires={int(lives.total_seconds())}&" in url


@pytest.mark.parametrize("life", [HOUR * 47, HOUR * 48, HOUR * 24 * 7])
async def test_life_whose_window_outlasts_what_google_promises_is_refused_in_words(iam, signer, life):
    with pytest.raises(Unsupported, match="12 hours at most"):
        await signer.sign(TABLE, Paths.of(["a"]), window_at(NOON, life, URL_PARTS, b"table"))
    assert iam.requests == []


async def test_at_the_end_of_any_window_that_is_signed_for_there_is_time_left(signer):
    for hours in range(1, 47):
        window = window_at(NOON, HOUR * hours, URL_PARTS, b"table")
        signed = await signer.sign(TABLE, Paths.of(["a"]), window)

        assert signed.expires_at - window.end >= timedelta(minutes=20)


def test_signatures_are_worth_being_shared_by_the_replicas(signer):
    assert (signer.cost, signer.has_sessions) == (SigningCost.CALL, False)


async def test_nothing_secret_shows(iam, signer, caplog):
    signed = await signer.sign(TABLE, Paths.of(["a", "b"]), WINDOW)

    assert "the-token" not in repr(signed) + repr(signer.__dict__) + caplog.text
