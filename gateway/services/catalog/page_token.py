"""Page tokens of lists: where the next page starts, sealed so that only we can have made them."""

from __future__ import annotations

from typing import Final

from gateway.domain.key import Keys
from gateway.domain.name import fold
from gateway.domain.sealed_text import pack, seal, unpack, unseal
from gateway.errors import InvalidArgument
from gateway.services.catalog.operation import Operation

# Two names of 255 characters, each as long as folding and UTF-8 can make it.
_MAX_LENGTH: Final = 8 * 1024


class PageTokens:
    """Tokens that carry the folded key of a page's last item, good for that list alone.

    They are good for any principal: what may be listed is decided anew on each page, and the one name
    in a token is one that whoever passed it on was shown.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def encode(self, operation: Operation, after: tuple[str, ...]) -> str:
        return seal(self._keys.current, _purpose(operation), pack(*after))

    def decode(self, operation: Operation, token: str) -> tuple[str, ...]:
        """Return the key that the page starts after; refuse a token of another list, or of nobody."""
        try:
            return unpack(unseal(self._keys, _purpose(operation), token, _MAX_LENGTH))
        except ValueError as exc:
            raise InvalidArgument(
                "the page token does not belong to this list; leave it out to start from the first page"
            ) from exc


def _purpose(operation: Operation) -> bytes:
    names = (fold(name) for name in (operation.share, operation.schema, operation.table))
    return pack(operation.method, *names)
