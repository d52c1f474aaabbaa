from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.exceptions import GenericError, PermissionDeniedError
from obstore.store import MemoryStore

from gateway.domain.location import parse_location
from gateway.errors import NotFound, Unavailable, Unsupported
from tests.cases import each_case
from vendors.obstore_reader import ObstoreReader, key_below

TABLE = parse_location("s3://lake/sales/orders")
ROOT = parse_location("s3://lake")
NAMES = ["00.json", "01.checkpoint.parquet", "01.json", "02.json", "_last_checkpoint"]


def told(code: str) -> str:
    """Return what obstore says of a store that refuses."""
    return f"Server returned non-2xx status code: 403 Forbidden: <Error><Code>{code}</Code></Error>"


@pytest.fixture
def store():
    store = MemoryStore()
    for name in NAMES:
        obstore.put(store, f"sales/orders/_delta_log/{name}", name.encode())
    for key in ("_delta_log/_sidecars/a.parquet", "part-0.parquet", "_delta_log2/9.json"):
        obstore.put(store, f"sales/orders/{key}", b"")
    obstore.put(store, "sales/orders2/_delta_log/9.json", b"")
    return store


async def listed(reader: ObstoreReader, start: str = "") -> list[str]:
    return [file.name for file in await reader.list_log(TABLE, start=start)]


async def test_a_sidecar_of_a_checkpoint_is_read_by_its_name_below_the_log(store):
    obstore.put(store, "sales/orders/_delta_log/_sidecars/b c.parquet", b"adds")

    assert await ObstoreReader(store).read_log(TABLE, "_sidecars/b c.parquet") == b"adds"


async def test_only_files_directly_below_the_log_are_listed_by_name(store):
    found = await ObstoreReader(store).list_log(TABLE, start="")

    assert [file.name for file in found] == NAMES
    assert found[0].size == len("00.json")
    assert found[0].modified_at.tzinfo is not None


@each_case(
    ("start", "names"),
    [
        ("00.json", NAMES),
        ("01", NAMES[1:]),
        ("01.json", NAMES[2:]),
        ("01.k", NAMES[3:]),
        ("0", NAMES),
        ("_", NAMES[4:]),
        ("a", []),
    ],
)
async def test_listing_starts_at_a_name_or_where_it_would_stand(store, start, names):
    assert await listed(ObstoreReader(store), start) == names


async def test_a_table_without_a_log_has_no_files(store):
    assert await ObstoreReader(store).list_log(parse_location("s3://lake/none"), start="") == []


async def test_a_file_is_read_whole_or_not_found(store):
    reader = ObstoreReader(store)

    assert await reader.read_log(TABLE, "01.json") == b"01.json"
    with pytest.raises(NotFound, match=r"has no file 07\.json"):
        await reader.read_log(TABLE, "07.json")


async def test_a_name_that_leads_out_of_the_log_is_not_found(store):
    with pytest.raises(NotFound):
        await ObstoreReader(store).read_log(TABLE, "../part-0.parquet")


async def test_a_table_at_the_root_is_read(store):
    obstore.put(store, "_delta_log/0.json", b"root")

    assert await ObstoreReader(store).read_log(ROOT, "0.json") == b"root"


@each_case("path", ["a b", "50%25", "50%", "x*?$", "ü/日本", 'it\'s "q"', "a+b&c=d#e[x]"])
async def test_keys_are_exactly_the_location(path):
    store = MemoryStore()
    location = parse_location(f"s3://lake/{path}")
    obstore.put(store, f"{path}/_delta_log/0.json", b"here")

    assert [meta["path"] for meta in obstore.list(store).collect()] == [f"{path}/_delta_log/0.json"]
    assert [file.name for file in await ObstoreReader(store).list_log(location, start="")] == ["0.json"]
    assert await ObstoreReader(store).read_log(location, "0.json") == b"here"


async def test_a_store_is_opened_on_first_use_and_once(store):
    opened = []

    async def open_store():
        opened.append(store)
        return store

    reader = ObstoreReader(open_store)
    assert opened == []
    for _ in range(2):
        await reader.read_log(TABLE, "00.json")

    assert len(opened) == 1


@pytest.mark.parametrize(
    ("exc", "error"),
    [
        (
            PermissionDeniedError(
                "Server returned non-2xx status code: 403 Forbidden: <Code>AccessDenied</Code>"
            ),
            Unsupported,
        ),
        (
            PermissionDeniedError(
                "Server returned non-2xx status code: 403 Forbidden: <Code>InvalidAccessKeyId</Code>"
            ),
            Unavailable,
        ),
        (
            GenericError(told("AccessDenied")),
            Unsupported,
        ),
        (GenericError("connection reset by peer, token=SECRET"), Unavailable),
        (OSError("SECRET"), Unavailable),
    ],
)
async def test_a_store_that_refuses_is_told_from_one_that_does_not_answer(exc, error, caplog):
    async def fail() -> MemoryStore:
        raise exc

    reader = ObstoreReader(fail)
    with caplog.at_level(logging.WARNING):
        for call in (reader.list_log(TABLE, start=""), reader.read_log(TABLE, "0.json")):
            with pytest.raises(error) as raised:
                await call
            assert raised.value.__suppress_context__

    assert len(caplog.records) == 2
    assert "SECRET" not in caplog.text


async def test_a_denial_is_told_as_other_servers_tell_it():
    async def fail() -> MemoryStore:
        raise GenericError(told("AccessDenied"))

    with pytest.raises(Unsupported, match="permission denied") as raised:
        await ObstoreReader(fail).list_log(TABLE, start="")
    assert raised.value.error_code == "RESOURCE_DOES_NOT_EXIST"


async def test_an_error_in_our_own_words_stays_as_it_is():
    async def fail() -> MemoryStore:
        raise Unavailable("no identity")

    with pytest.raises(Unavailable, match="no identity"):
        await ObstoreReader(fail).list_log(TABLE, start="")


@given(st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=30))
def test_what_a_listing_starts_after_sorts_before_the_start(start):
    offsets: list[str] = []

    async def listing(
        store: object, directory: str, *, offset: str | None, **_: object
    ) -> AsyncIterator[list[Any]]:
        offsets.append((offset or "").removeprefix(f"{directory}/"))
        yield []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(obstore, "list", listing)
        asyncio.run(listed(ObstoreReader(MemoryStore()), start))
    (before,) = offsets
    assert before < start
    assert "/" not in before
    # Near enough: nothing but the last letter differs.
    assert before[: len(start) - 1] == start[:-1]


def test_keys_lie_below_their_location():
    assert key_below(TABLE, "x") == "sales/orders/x"
    assert key_below(TABLE, "") == "sales/orders/"
    assert key_below(ROOT, "x") == "x"
