"""The store that a reader opens, as obstore is given it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import obstore
import pytest

from gateway.domain.location import parse_location
from gateway.ports import LogReader


async def opened_store(reader: LogReader | None) -> Any:
    assert reader is not None
    stores: list[object] = []

    async def listing(store: object, *_: object, **__: object) -> AsyncIterator[list[object]]:
        stores.append(store)
        yield []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(obstore, "list", listing)
        await reader.list_log(parse_location("s3://lake/t"), start="")
    (store,) = stores
    return store
