"""Deletion vectors: which rows of a data file are gone, told in the log or in a file beside the data."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from gateway.demo.z85 import to_z85

_MAGIC: Final = 1681511377
_NO_RUNS: Final = 12346
# Above this many rows a container is a bit for each row it could hold; below, a list.
_MAX_LISTED: Final = 4096
_BITS_BYTES: Final = 8192
_FILE_VERSION: Final = b"\x01"


def inline_vector(rows: Collection[int]) -> dict[str, Any]:
    """Return the descriptor of a vector that the log itself holds."""
    bitmap = to_bitmap(rows)
    return {
        "storageType": "i",
        "pathOrInlineDv": to_z85(bitmap),
        "sizeInBytes": len(bitmap),
        "cardinality": len(set(rows)),
    }


def vector_file(
    vectors: Sequence[Collection[int]], name: uuid.UUID, prefix: str = ""
) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the content of a file that holds vectors, and the descriptor of each."""
    content, descriptors = _FILE_VERSION, []
    for rows in vectors:
        bitmap = to_bitmap(rows)
        descriptor = {
            "storageType": "u",
            "pathOrInlineDv": prefix + to_z85(name.bytes),
            "offset": len(content),
            "sizeInBytes": len(bitmap),
            "cardinality": len(set(rows)),
        }
        descriptors.append(descriptor)
        content += struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    return content, descriptors


def vector_path(name: uuid.UUID, prefix: str = "") -> str:
    """Return where such a file is below its table."""
    return f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"


def unique_id(descriptor: Mapping[str, Any] | None) -> str | None:
    """Return what tells a logical file from another one of the same path."""
    if descriptor is None:
        return None
    offset = f"@{descriptor['offset']}" if descriptor.get("offset") is not None else ""
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}{offset}"


def to_bitmap(rows: Collection[int]) -> bytes:
    """Return row numbers below 2**32 as an array of one roaring bitmap, in the portable format."""
    containers = [(key, [row & 0xFFFF for row in each]) for key, each in groupby(sorted(set(rows)), _key_of)]
    contents = [_to_container(low) for _, low in containers]
    head = struct.pack("<II", _NO_RUNS, len(containers))
    head += b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers)
    offset = len(head) + 4 * len(containers)
    for content in contents:
        head += struct.pack("<I", offset)
        offset += len(content)
    return struct.pack("<IQI", _MAGIC, 1, 0) + head + b"".join(contents)


def _key_of(row: int) -> int:
    return row >> 16


def _to_container(low: Sequence[int]) -> bytes:
    if len(low) <= _MAX_LISTED:
        return struct.pack(f"<{len(low)}H", *low)
    bits = bytearray(_BITS_BYTES)
    for row in low:
        bits[row >> 3] |= 1 << (row & 7)
    return bytes(bits)
