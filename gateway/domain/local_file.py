"""Opening local files below a directory without ever leaving it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from gateway.domain.window import EPOCH

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe must not keep its reader waiting for a writer.
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# File systems know times that a datetime does not.
_LAST_NS: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 10**9


def open_beneath(directory: Path, segments: Sequence[str], flags: int = 0) -> int:
    """Return a descriptor of what the segments name, or raise ``OSError``.

    Links on the way to the directory are followed: it is the operator's word. Below it none is, neither to
    a directory nor to a file, wherever it leads.
    """
    *parents, last = segments
    opened = os.open(directory, _DIRECTORY)
    try:
        for segment in parents:
            below = _open(segment, _DIRECTORY, opened)
            os.close(opened)
            opened = below
        return _open(last, _FILE | flags, opened)
    finally:
        os.close(opened)


def modified_at(status: os.stat_result) -> datetime:
    """Return when a file was changed, to the microsecond; any time can be set on a file."""
    return EPOCH + timedelta(microseconds=min(max(status.st_mtime_ns, 0), _LAST_NS) // 1000)


def _open(segment: str, flags: int, directory: int) -> int:
    if segment in {"", ".", ".."} or "/" in segment or "\0" in segment:
        raise OSError(errno.EPERM, "not the name of a file")
    return os.open(segment, flags | os.O_NOFOLLOW, dir_fd=directory)
