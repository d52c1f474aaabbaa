"""One demo at a time in a state directory: a second would replace the profile and keys of the first."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from gateway.errors import Unavailable

_NAME: Final = "demo.lock"


@contextmanager
def sole_user(state: Path) -> Iterator[None]:
    """Hold a state directory that is there; raise ``Unavailable`` when another process does."""
    with (state / _NAME).open("a+", encoding="utf-8") as file:
        try:
            # It ends with this process however that ends, so that nothing has to be tidied up by hand.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"a demo already runs from {state}{_holder(file)}; stop it, or give --state DIR "
                "(make run PORT=8090 DEMO='--state DIR')"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _holder(file: TextIO) -> str:
    file.seek(0)
    pid = file.read().strip()
    # Empty for the moment between the other one's lock and its first words.
    return f" (process {pid})" if pid.isdecimal() else ""
