"""The keys of what replicas and workers share."""

from __future__ import annotations

import re
from typing import Final

from gateway.errors import InvalidArgument

# A store keeps things of its own under such names.
RESERVED: Final = ".state-"

_KEY: Final = re.compile(r"[A-Za-z0-9._=-]+(?:/[A-Za-z0-9._=-]+)*")
_MOST: Final = 800
_LONGEST_WORD: Final = 200


def is_state_key(text: str) -> bool:
    """Tell whether something can be kept under this text."""
    if len(text) > _MOST or _KEY.fullmatch(text) is None:
        return False
    return all(_is_word(word) for word in text.split("/"))


def check_state_key(key: str) -> str:
    """Return a key; raise ``InvalidArgument`` where it is none."""
    if not is_state_key(key):
        raise InvalidArgument(f"nothing is kept under {key[:100]!r}: a key is words joined by slashes")
    return key


def check_state_prefix(prefix: str) -> str:
    """Return the prefix of a listing; raise ``InvalidArgument`` unless it is whole words, or nothing."""
    if prefix and not (prefix.endswith("/") and is_state_key(prefix[:-1])):
        raise InvalidArgument(f"{prefix[:99]!r} is no prefix of keys: each of its words ends with a slash")
    return prefix


def _is_word(word: str) -> bool:
    # A word of dots would lead to another directory.
    return len(word) <= _LONGEST_WORD and word.strip(".") != "" and not word.startswith(RESERVED)
