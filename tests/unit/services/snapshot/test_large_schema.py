from __future__ import annotations

import threading

import pytest

from gateway.services.snapshot.large_schema import read_schema
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.protocol import Protocol


@pytest.mark.parametrize(("size", "is_here"), [(1000, True), (100_000, False)])
async def test_only_a_large_schema_is_worth_a_thread(size, is_here):
    metadata = Metadata(id="t", schema_string="x" * size)
    here = threading.get_ident()
    assert (await read_schema(metadata, threading.get_ident) == here) is is_here


async def test_what_the_work_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        await read_schema(Metadata(id="t", schema_string="x" * 100_000), lambda: 1 // 0)


async def test_a_long_protocol_is_worth_a_thread_too():
    protocol = Protocol(min_reader_version=3, reader_features=("f" * 60,) * 1000)
    metadata = Metadata(id="t", schema_string="")

    assert await read_schema(metadata, threading.get_ident) == threading.get_ident()
    assert await read_schema(metadata, threading.get_ident, protocol) != threading.get_ident()
