"""Partition values as Spark writes them: as text, as a directory's name, and as a path in the log."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import quote

_NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED_IN_NAMES: Final = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
# Besides letters and digits, what a Java URI leaves as it is in a path.
_LEGAL_IN_PATHS: Final = "/_-!.~'()*,;:$&+=@"
_SPACES_AND_CONTROLS: Final = frozenset({"Zs", "Zl", "Zp", "Cc"})


def partition_text(value: object) -> str | None:
    """Return a partition value as the log spells it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        text = value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
        return text.rstrip("0") if "." in text else text
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def directory_of(values: Mapping[str, str | None]) -> str:
    """Return the directory below the table for files with these values, as it is named on disk."""
    return "/".join(f"{_escaped(column)}={_directory_value(value)}" for column, value in values.items())


def log_path(key: str) -> str:
    """Return a file's path on disk as the URI that the log has for it."""
    return "".join(char if _is_legal(char) else quote(char, safe="") for char in key)


def _directory_value(value: str | None) -> str:
    return _escaped(value) if value else _NULL_DIRECTORY


def _escaped(name: str) -> str:
    return _ESCAPED_IN_NAMES.sub(lambda match: f"%{ord(match.group()):02X}", name)


def _is_legal(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in _LEGAL_IN_PATHS
    return unicodedata.category(char) not in _SPACES_AND_CONTROLS
