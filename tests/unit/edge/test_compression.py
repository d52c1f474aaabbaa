from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.accept_encoding import Coding
from gateway.edge.compression import MIN_SIZE, Compression
from tests.compressed import Reader, plain

CODINGS = pytest.mark.parametrize("coding", [Coding.GZIP, Coding.ZSTD])
LARGE = b'{"items":[]}' * MIN_SIZE
SMALL = b"x" * (MIN_SIZE - 1)


@pytest.fixture
async def compression() -> AsyncIterator[Compression]:
    made = Compression(enabled=True)
    yield made
    await made.close()


@CODINGS
async def test_all_that_was_given_can_be_read_at_once_and_only_the_end_makes_it_whole(
    compression: Compression, coding: Coding
) -> None:
    encoder, reader = compression.open(coding), Reader(coding)
    for page in (b"first line\n", b"second\n" * 10_000, b"third\n" * 200_000):
        assert reader.read(await encoder.encode(page)) == page
        assert not reader.is_whole
    assert reader.read(await encoder.finish(b"last\n")) == b"last\n"
    assert reader.is_whole


@CODINGS
@given(pages=st.lists(st.binary(max_size=300), max_size=6), last=st.binary(max_size=300))
def test_any_pages_come_out_as_they_went_in(coding: Coding, pages: list[bytes], last: bytes) -> None:
    async def check() -> None:
        compression = Compression(enabled=True)
        encoder, reader = compression.open(coding), Reader(coding)
        for page in pages:
            assert reader.read(await encoder.encode(page)) == page
        assert reader.read(await encoder.finish(last)) == last
        assert reader.is_whole
        await compression.close()

    asyncio.run(check())


async def test_as_it_is_nothing_is_touched(compression: Compression) -> None:
    encoder = compression.open(Coding.IDENTITY)
    assert await encoder.encode(LARGE) is LARGE
    assert await encoder.finish(b"") == b""


@CODINGS
async def test_large_pages_are_compressed_beside_the_loop_and_small_ones_at_once(
    compression: Compression, coding: Coding
) -> None:
    encoder, before = compression.open(coding), workers()
    await encoder.encode(b"x" * 64 * 1024)
    assert not workers() - before
    await encoder.encode(b"x" * (64 * 1024 + 1))
    assert workers() - before


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("compression")}


async def test_streams_under_way_do_not_mix(compression: Compression) -> None:
    streams = [(compression.open(coding), Reader(coding)) for coding in (Coding.GZIP, Coding.ZSTD) * 8]
    pages = [bytes([65 + number]) * 100_000 for number in range(len(streams))]
    encoded = await asyncio.gather(
        *(encoder.encode(page) for (encoder, _), page in zip(streams, pages, strict=True))
    )
    assert [reader.read(data) for (_, reader), data in zip(streams, encoded, strict=True)] == pages


async def test_a_short_answer_is_not_worth_it(compression: Compression) -> None:
    assert compression.choose(["gzip"], MIN_SIZE - 1) is Coding.IDENTITY
    assert compression.choose(["gzip"], MIN_SIZE) is Coding.GZIP


async def test_a_short_answer_is_compressed_for_a_client_that_refuses_others(
    compression: Compression,
) -> None:
    assert compression.choose(["gzip, identity;q=0"], 1) is Coding.GZIP


async def test_an_answer_that_could_have_been_compressed_says_so(compression: Compression) -> None:
    assert compression.headers(Coding.IDENTITY) == {"Vary": "Accept-Encoding"}
    assert compression.headers(Coding.ZSTD) == {"Vary": "Accept-Encoding", "Content-Encoding": "zstd"}


@CODINGS
async def test_a_whole_answer_is_compressed_with_its_length(compression: Compression, coding: Coding) -> None:
    response = web.Response(body=LARGE, headers={"Cache-Control": "no-store"})
    await compression.compress(response, [coding])
    assert isinstance(response.body, bytes)
    assert plain(dict(response.headers), response.body) == LARGE
    assert response.content_length == len(response.body) < len(LARGE)
    assert response.headers["Cache-Control"] == "no-store"


async def test_a_short_whole_answer_only_says_that_it_could_be(compression: Compression) -> None:
    response = web.Response(body=SMALL)
    await compression.compress(response, ["gzip"])
    assert response.body is SMALL
    assert response.headers["Vary"] == "Accept-Encoding"
    assert "Content-Encoding" not in response.headers


async def test_an_answer_without_a_body_could_not(compression: Compression) -> None:
    response = web.Response()
    await compression.compress(response, ["gzip"])
    assert "Vary" not in response.headers


async def test_nothing_is_compressed_where_that_is_off() -> None:
    compression = Compression(enabled=False)
    response = web.Response(body=LARGE)
    await compression.compress(response, ["gzip, identity;q=0"])
    assert response.body is LARGE
    assert "Vary" not in response.headers
    assert compression.choose(["zstd"], len(LARGE)) is Coding.IDENTITY
