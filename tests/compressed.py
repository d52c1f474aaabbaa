"""Reads compressed answers as a client does: as far as they came, and whether that was all."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor
else:
    from backports.zstd import ZstdDecompressor

# Gzip alone: no other wrapping is taken for it.
_GZIP = 16 + zlib.MAX_WBITS


class Reader:
    """Takes the bytes of a body in its coding."""

    def __init__(self, coding: str) -> None:
        assert coding in {"gzip", "zstd"}
        self._stream = zlib.decompressobj(_GZIP) if coding == "gzip" else ZstdDecompressor()

    def read(self, data: bytes) -> bytes:
        """Return what can be read by now."""
        found = self._stream.decompress(data) if data else b""
        assert not self._stream.unused_data, "there is something behind the end"
        return found

    @property
    def is_whole(self) -> bool:
        """Whether the stream came to its own end."""
        return self._stream.eof


def plain(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the body of a whole answer as it was before it was compressed, if it was."""
    coding = headers.get("Content-Encoding")
    if coding is None:
        return body
    reader = Reader(coding)
    found = reader.read(body)
    assert reader.is_whole
    return found
