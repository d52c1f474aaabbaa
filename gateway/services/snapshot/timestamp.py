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


def parse_timestamp(text: str) -> datetime:
    """Return the time that an ISO 8601 text names; one without a zone is UTC."""
    match = _ISO.fullmatch(text)
    if match is None:
        raise _malformed(text)
    # Nine digits are legal and what some clients send; a datetime holds six.
    fraction = (match["fraction"] or "0")[:6]
    try:
        at = datetime.fromisoformat(f"{match['date']}T{match['time']}.{fraction:0<6}{match['zone'] or 'Z'}")
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise _malformed(text) from exc


def _malformed(text: str) -> InvalidArgument:
    return InvalidArgument(
        f"{text[:64]!r} is not a timestamp in ISO 8601 and UTC, such as 2022-01-01T00:00:00Z"
    )
