"""The signals that ask a process to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_STOP: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_signals(handler: Callable[[], None]) -> Iterator[None]:
    """Call the handler on each until the block is left; from then on they do nothing."""
    loop = asyncio.get_running_loop()
    for number in _STOP:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in _STOP:
            loop.remove_signal_handler(number)
            # All is closed: being asked again must not turn a clean end into a killed process.
            signal.signal(number, signal.SIG_IGN)
