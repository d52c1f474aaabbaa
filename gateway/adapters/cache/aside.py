"""Work on many bytes, done where it holds up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

# Half a millisecond of packing and sealing, of hashing less; a thread costs a tenth of that.
_MOST_IN_PLACE: Final = 256 * 1024

T = TypeVar("T")


async def aside(size: int, work: Callable[[], T]) -> T:
    """Do the work on so many bytes, in a thread where it would hold up the event loop."""
    return await asyncio.to_thread(work) if size > _MOST_IN_PLACE else work()
