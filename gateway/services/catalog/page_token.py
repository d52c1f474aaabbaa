"""Page tokens of lists: where the next page starts, sealed so that only we can have made them."""

from __future__ import annotations

import base64
import hmac
from typing import Final

from gateway.domain.key import Key, Keys
from gateway.domain.name import fold
from gateway.errors import InvalidArgument
from gateway.services.catalog.operation import Operation

_FORMAT: Final = b"\x01"
_MAC_BYTES: Final = 16
# Two names of 255 characters, each as long as folding and UTF-8 can make it.
_MAX_LENGTH: Final = 8 * 1024


class PageTokens:
    """Tokens that carry the folded key of a page's last item, good for that list alone.

    They are good for any principal: what may be listed is decided anew on each page, and the one name
    in a token is one that whoever passed it on was shown. Layout: format, key id, MAC, key.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def encode(self, operation: Operation, after: tuple[str, ...]) -> str:
        key = self._keys.current
        body = _pack(*after)
        return _to_text(_FORMAT + _pack(key.id) + _mac(key, operation, body) + body)

    def decode(self, operation: Operation, token: str) -> tuple[str, ...]:
        """Return the key that the page starts after; refuse a token of another list, or of nobody."""
        try:
            return self._opened(operation, token)
        except ValueError as exc:
            raise InvalidArgument(
                "the page token does not belong to this list; leave it out to start from the first page"
            ) from exc

    def _opened(self, operation: Operation, token: str) -> tuple[str, ...]:
        data = _from_text(token)
        if data[:1] != _FORMAT:
            raise ValueError("another format")
        key_id, sealed = _unpack_one(data[1:])
        key = self._keys.find(key_id)
        mac, body = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        if key is None or not hmac.compare_digest(mac, _mac(key, operation, body)):
            raise ValueError("not signed by us for this list")
        return _unpack(body)


def _mac(key: Key, operation: Operation, body: bytes) -> bytes:
    # Each part with its length, so that no two lists spell the same message.
    names = (fold(name) for name in (operation.share, operation.schema, operation.table))
    return key.mac(_FORMAT + _pack(key.id, operation.method, *names) + body)[:_MAC_BYTES]


def _pack(*parts: str) -> bytes:
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4) + part for part in encoded)


def _unpack(data: bytes) -> tuple[str, ...]:
    parts = []
    while data:
        part, data = _unpack_one(data)
        parts.append(part)
    return tuple(parts)


def _unpack_one(data: bytes) -> tuple[str, bytes]:
    end = 4 + int.from_bytes(data[:4])
    if len(data) < end:
        raise ValueError("cut short")
    return data[4:end].decode(), data[end:]


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_text(token: str) -> bytes:
    if len(token) > _MAX_LENGTH:
        raise ValueError("longer than any token")
    data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    # The last character has bits that mean nothing: only one spelling is ours.
    if _to_text(data) != token:
        raise ValueError("another spelling")
    return data
