"""Work that goes on after whoever began it was answered."""

from __future__ import annotations

import asyncio


async def finish_background() -> None:
    """Wait until nothing is under way any more but the test itself."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
