from __future__ import annotations

from typing import cast

import pytest
from aiohttp import web

from gateway.edge.body import StreamBody


class FakeResponse:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ended = False
        # Raised at the write with this number.
        self.fails_at = -1

    async def write(self, data: memoryview) -> None:
        if len(self.pieces) == self.fails_at:
            raise ConnectionResetError
        self.pieces.append(bytes(data))

    async def write_eof(self) -> None:
        self.ended = True


class UpperCase:
    def __init__(self) -> None:
        self.error: Exception | None = None

    async def encode(self, data: bytes) -> bytes:
        if self.error is not None:
            raise self.error
        return data.upper()

    async def finish(self, data: bytes) -> bytes:
        return data.upper() + b"!"


class Sent:
    def __init__(self) -> None:
        self.response, self.encoder = FakeResponse(), UpperCase()
        self.body = StreamBody(cast("web.StreamResponse", self.response), self.encoder)


@pytest.fixture
def sent() -> Sent:
    return Sent()


async def test_pages_and_the_end_are_sent_in_their_coding(sent: Sent) -> None:
    await sent.body.write(b"one\n")
    await sent.body.write(b"two\n")
    await sent.body.end(b"end\n")
    assert sent.response.pieces == [b"ONE\n", b"TWO\n", b"END\n!"]
    assert sent.response.ended


async def test_a_long_page_is_sent_in_pieces(sent: Sent) -> None:
    await sent.body.write(b"a" * 600_000)
    assert [len(piece) for piece in sent.response.pieces] == [262_144, 262_144, 75_712]
    assert b"".join(sent.response.pieces) == b"A" * 600_000


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("the compressor failed")])
async def test_an_answer_whose_page_could_not_be_compressed_is_never_ended(
    sent: Sent, error: Exception
) -> None:
    sent.encoder.error = error
    with pytest.raises(type(error)):
        await sent.body.write(b"one\n")
    with pytest.raises(ConnectionError):
        await sent.body.end(b"the error, in words\n")
    assert not sent.response.ended


async def test_an_answer_whose_page_was_sent_in_part_is_never_ended(sent: Sent) -> None:
    sent.response.fails_at = 1
    with pytest.raises(ConnectionResetError):
        await sent.body.write(b"a" * 600_000)
    with pytest.raises(ConnectionError):
        await sent.body.end(b"")
    assert not sent.response.ended
