"""A replica that takes a lease and never ends its mint, for a test to kill."""

from __future__ import annotations

import asyncio
import sys

from tests.integration.replica import Provider, replica
from tests.waiting import eventually_async


async def main(url: str) -> None:
    provider = Provider()
    provider.gate.clear()
    async with replica(provider, url=url, leaseTime="60s") as mine:
        task = asyncio.create_task(mine.issue())
        await eventually_async(lambda: provider.calls)
        sys.stdout.write("minting\n")
        sys.stdout.flush()
        await task


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
