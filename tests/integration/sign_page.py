"""A replica of its own process: signs a page with a session of its window, and prints what came of it."""

from __future__ import annotations

import asyncio
import json
import sys

from gateway.ports import SigningCost
from tests.integration.signing_replica import signing_replica


async def main(url: str) -> None:
    async with signing_replica(SigningCost.HASH, has_sessions=True, url=url) as replica:
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        urls = await replica.urls()
        say(json.dumps({"urls": urls, "minted": len(replica.vendor.minted)}))
        # The others may still wait for what this one has minted.
        await asyncio.to_thread(sys.stdin.readline)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
