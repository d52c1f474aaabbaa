"""Signatures as the bytes that are sealed: in half the room where they are hexadecimal."""

from __future__ import annotations

import json
from binascii import Error, hexlify, unhexlify
from datetime import UTC, datetime
from typing import Any, Final

from gateway.adapters.cache.codec import Codec, Packed
from gateway.ports import Signatures

_LENGTH_BYTES: Final = 4


def pack(packed: Packed[Signatures]) -> bytes:
    signatures = packed.value
    width, body = _packed_body(signatures.signatures)
    content = {
        "origin": signatures.origin,
        "query": signatures.query,
        "expires": signatures.expires_at.astimezone(UTC).isoformat(),
        # Bytes of each, or 0 for signatures that are stored as they are.
        "width": width,
        "epochs": [epoch.hex() for epoch in packed.epochs],
    }
    head = json.dumps(content, separators=(",", ":")).encode()
    return len(head).to_bytes(_LENGTH_BYTES) + head + body


def unpack(data: bytes) -> Packed[Signatures] | None:
    """Return what was packed, or None when another program packed it."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES])
    try:
        content: Any = json.loads(data[_LENGTH_BYTES:start])
        signatures = Signatures(
            origin=content["origin"],
            query=content["query"],
            signatures=_unpacked_body(content["width"], data[start:]),
            expires_at=datetime.fromisoformat(content["expires"]),
        )
        return Packed(signatures, tuple(map(bytes.fromhex, content["epochs"])))
    except (ValueError, KeyError, TypeError):
        return None


def _packed_body(joined: bytes) -> tuple[int, bytes]:
    end = joined.find(b"\n")
    width = (len(joined) if end < 0 else end) // 2
    try:
        raw = unhexlify(joined.replace(b"\n", b""))
    except Error:
        return 0, joined
    # Only what comes back byte for byte: lower case, and all of one length.
    return (width, raw) if width and _joined(raw, width) == joined else (0, joined)


def _unpacked_body(width: int, body: bytes) -> bytes:
    return _joined(body, width) if width else body


def _joined(raw: bytes, width: int) -> bytes:
    # Separators are counted from the right, which is the same where all are of one length.
    return hexlify(raw, b"\n", width)


SIGNATURES: Final = Codec(pack, unpack, lambda signatures: len(signatures.signatures))
