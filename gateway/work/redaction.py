"""Keeps what must not be read by others out of what a job says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

HIDDEN: Final = "[hidden]"

# The names of settings that hold a secret, in Hadoop's words and in Spark's.
_SECRET: Final = re.compile(r"(?:key|secret|token|password|passwd|sas)(?:\.[a-z0-9.-]+)?$", re.IGNORECASE)
# Shorter ones stand in ordinary words.
_SHORTEST: Final = 6
_SHORTEST_VALUE: Final = 3


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a secret."""
    return _SECRET.search(name) is not None


class Redaction:
    """Knows the secrets of some settings, and hides them in any text.

    Values besides are hidden where they stand by themselves: they may be parts of ordinary words.
    """

    def __init__(self, *settings: Mapping[str, str], values: Iterable[str] = ()) -> None:
        found = {
            value
            for one in settings
            for name, value in one.items()
            if len(value) >= _SHORTEST and is_secret(name)
        }
        # The longest first: one may be the beginning of another.
        self._secrets = sorted(found, key=len, reverse=True)
        whole = sorted({value for value in values if len(value) >= _SHORTEST_VALUE}, key=len, reverse=True)
        alone = "|".join(map(re.escape, whole))
        self._values = re.compile(rf"(?<!\w)(?:{alone})(?!\w)") if alone else None

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return self._values.sub(HIDDEN, text) if self._values is not None else text
