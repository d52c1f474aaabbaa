"""Holds the pages of an answer back until a test lets them pass."""

from __future__ import annotations

import asyncio
from typing import Literal


class Gate(asyncio.Semaphore):
    """Lets pages pass, one by one, and knows who waits."""

    def __init__(self, pages: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(pages)
        self._home = loop
        self.waiting = 0

    async def acquire(self) -> Literal[True]:
        self.waiting += 1
        try:
            return await super().acquire()
        finally:
            self.waiting -= 1

    def let_pass(self, pages: int = 1) -> None:
        for _ in range(pages):
            self._home.call_soon_threadsafe(self.release)
