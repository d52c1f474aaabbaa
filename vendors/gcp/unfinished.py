"""Signatures that were given for what then could not be finished."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

# Some 12 MB.
_MOST: Final = 20_000


class Unfinished:
    """They wait for whoever asks again, who then has them alone; the oldest go first."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._signed: OrderedDict[bytes, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._signed)

    def take(self, messages: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return what is there of the signatures of some messages."""
        return {message: self._signed.pop(message) for message in messages if message in self._signed}

    def keep(self, signed: Mapping[bytes, bytes]) -> None:
        self._signed.update(signed)
        while len(self._signed) > self._most:
            self._signed.popitem(last=False)
