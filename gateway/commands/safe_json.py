"""JSON for people's terminals and for machines alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def to_safe_json(
    value: object, default: Callable[[Any], object] | None = None, *, indent: int | None = 2
) -> str:
    """Return JSON that cannot move a terminal's cursor: in ASCII, as names are what callers made up."""
    # The one character of ASCII that a terminal obeys and JSON leaves as it is.
    return json.dumps(value, indent=indent, ensure_ascii=True, default=default).replace("\x7f", "\\u007f")
