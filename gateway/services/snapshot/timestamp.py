"""Timestamps as recipients write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from gateway.errors import InvalidArgument

_ISO: Final = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})[T ](?P<time>\d{2}:\d{2}:\d{2})"
    r"(?:\.(?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d{2}:\d{2})?",
    re.ASCII,
)


# A plus that went through a URL as it is.
_LOST_PLUS: Final = re.compile(r".*:\d{2}(?:\.\d+)? \d{2}:\d{2}", re.ASCII)


def parse_timestamp(name: str, text: str) -> datetime:
    """Return the time that a parameter's ISO 8601 text names; one without a zone is UTC."""
    match = _ISO.fullmatch(text)
    if match is None:
        raise _malformed(name, text)
    # Nine digits are legal and what some clients send; a datetime holds six.
    fraction = (match["fraction"] or "0")[:6]
    try:
        at = datetime.fromisoformat(f"{match['date']}T{match['time']}.{fraction:0<6}{match['zone'] or 'Z'}")
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise _malformed(name, text) from exc


def _malformed(name: str, text: str) -> InvalidArgument:
    hint = "; in a URL, write + as %2B" if _LOST_PLUS.fullmatch(text[:64]) else ""
    return InvalidArgument(
        f"{name} {text[:64]!r} is not a timestamp in ISO 8601 and UTC, such as 2022-01-01T00:00:00Z{hint}"
    )
