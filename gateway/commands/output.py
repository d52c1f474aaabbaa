"""Standard output that cannot be written: told in one line, or not at all when its reader has seen enough."""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO, cast

_STDOUT: Final = 1

Failure = OSError | ValueError


def write_out(more: str = "") -> Failure | None:
    """Write what standard output still holds, and more; when that fails drop it all, and return why."""
    # None when whoever started the process has closed it, which typeshed does not know.
    stream = cast("TextIO | None", sys.stdout)
    if stream is None:
        return None
    try:
        stream.write(more)
        stream.flush()
    except (OSError, ValueError) as exc:
        _drop()
        return exc
    return None


def tell(failure: Failure) -> int:
    """Say why the output is not whole, and return the exit status of that."""
    if isinstance(failure, BrokenPipeError):
        # As in `sluice check-config … | head`.
        return 0
    reason = getattr(failure, "strerror", None) or failure
    print(f"sluice: cannot write to standard output: {reason}", file=sys.stderr)
    return 1


def _drop() -> None:
    """Let everything from here on go nowhere: it would fail again, and at the end without a word."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDOUT)
    if nowhere != _STDOUT:
        os.close(nowhere)
