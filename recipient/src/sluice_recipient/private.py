"""Files that only this user reads, and that go when the process ends."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path


def write_private(name: str, content: str) -> Path:
    """Write a file into this process' own directory, and return where it is."""
    file = _directory() / name
    # Moved into place, so that nobody reads half of it.
    fresh = file.with_name(f"{name}.{os.getpid()}.new")
    fresh.touch(mode=0o600)
    fresh.write_text(content)
    fresh.replace(file)
    return file


@functools.cache
def _directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="sluice-"))
    atexit.register(_remove, directory, os.getpid())
    return directory


def _remove(directory: Path, owner: int) -> None:
    # A fork runs this too when it ends, while its parent goes on.
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
