"""Text that recipients carry for us: readable by them, made by us alone, and good for one purpose."""

from __future__ import annotations

import base64
import hmac
from typing import Final

from gateway.domain.key import Key, Keys

_FORMAT: Final = b"\x01"
_MAC_BYTES: Final = 16


def seal(key: Key, purpose: bytes, body: bytes) -> str:
    """Return the body as text that only ``unseal`` with the same purpose takes; it needs no URL encoding.

    Layout: format, key id, MAC, body. The purpose is not in it, so it is as long as the body makes it.
    """
    return _to_text(_FORMAT + pack(key.id) + _mac(key, purpose, body) + body)


def unseal(keys: Keys, purpose: bytes, text: str, max_length: int) -> bytes:
    """Return the body of a sealed text; raise ``ValueError`` for one of another purpose, or of nobody."""
    if len(text) > max_length:
        raise ValueError("longer than any")
    data = _from_text(text)
    if data[:1] != _FORMAT:
        raise ValueError("another format")
    key_id, sealed = _unpack_one(data[1:])
    key = keys.find(key_id)
    mac, body = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
    if key is None or not hmac.compare_digest(mac, _mac(key, purpose, body)):
        raise ValueError("not sealed by us for this")
    return body


def pack(*parts: str) -> bytes:
    """Return the parts, each with its length, so that no other parts look the same."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4) + part for part in encoded)


def unpack(data: bytes) -> tuple[str, ...]:
    """Return the parts that were packed; raise ``ValueError`` for what is not packed."""
    parts = []
    while data:
        part, data = _unpack_one(data)
        parts.append(part)
    return tuple(parts)


def _mac(key: Key, purpose: bytes, body: bytes) -> bytes:
    message = _FORMAT + pack(key.id) + len(purpose).to_bytes(4) + purpose + body
    return key.mac(message)[:_MAC_BYTES]


def _unpack_one(data: bytes) -> tuple[str, bytes]:
    end = 4 + int.from_bytes(data[:4])
    if len(data) < end:
        raise ValueError("cut short")
    return data[4:end].decode(), data[end:]


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_text(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    # The last character has bits that mean nothing: only one spelling is ours.
    if _to_text(data) != text:
        raise ValueError("another spelling")
    return data
