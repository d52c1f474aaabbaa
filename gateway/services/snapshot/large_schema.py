"""Work on a table's schema, kept off the event loop where the schema is large."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol

T = TypeVar("T")

# Parsing so much text takes about a millisecond; a thread costs a tenth of that, for every request.
_LARGE: Final = 64 * 1024


async def read_schema(metadata: Metadata, work: Callable[[], T], protocol: Protocol | None = None) -> T:
    """Return what the work gives, which looks through the schema, and the protocol where that is given."""
    if metadata.memory + (protocol.memory if protocol is not None else 0) < _LARGE:
        return work()
    return await asyncio.to_thread(work)
