"""When a commit says itself that it was made."""

from __future__ import annotations

import json
from typing import Any, Final

from gateway.services.snapshot.log.fault import damaged

# Beyond the year 9999 nobody means it.
_LATEST: Final = 253_402_300_800_000


def read_commit_time(name: str, content: bytes) -> int:
    """Return the in-commit timestamp, in milliseconds since the epoch; raise when there is none."""
    # It is in the first action; a writer that puts it elsewhere is understood all the same.
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        if b'"commitInfo"' in content[start : min(end, start + 64)]:
            return _time_in(name, content[start:end])
        start = end + 1
    raise damaged(name, "does not say when it was made, as the table's properties demand")


def _time_in(name: str, line: bytes) -> int:
    try:
        info: Any = json.loads(line)["commitInfo"]
        time = info.get("inCommitTimestamp")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise damaged(name, "cannot be parsed") from exc
    if type(time) is not int or not 0 <= time < _LATEST:
        raise damaged(name, "does not say when it was made, as the table's properties demand")
    return time
