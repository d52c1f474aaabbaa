"""What a run says of itself, on a terminal or in a log."""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

from gateway.commands.text_table import printable
from gateway.work.runner import Progress

_PAUSE: Final = 5.0
_WIDTH: Final = 100


class ProgressLine:
    """One line that is written over and over on a terminal; elsewhere a line every few seconds."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._told_at = 0.0
        self._is_open = False

    def __call__(self, progress: Progress) -> None:
        share = f" {100 * progress.done // progress.total}%" if progress.total > 0 else ""
        text = printable(f"{self._name}: {progress.message}{share}")
        if self._is_terminal:
            self._stream.write(f"\r{text[:_WIDTH].ljust(_WIDTH)}")
            self._is_open = True
        elif time.monotonic() - self._told_at >= _PAUSE:
            self._told_at = time.monotonic()
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def end(self) -> None:
        if self._is_open:
            self._stream.write(f"\r{' ' * _WIDTH}\r")
            self._stream.flush()
            self._is_open = False
