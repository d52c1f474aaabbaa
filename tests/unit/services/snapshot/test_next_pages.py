from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.log import commit_name
from gateway.errors import InvalidArgument
from tests.builders import STARTED_AT, STEP, TableBuilder, add, numbers
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.world import World, at_time, at_version

_BAD_PAGE = "the page token is not valid for this request, or has expired"
_BAD_REFRESH = "the refresh token is not valid for this table, or has expired; leave it out"
_FEED = {"minReaderVersion": 1, "minWriterVersion": 4}
_FEED_ON = {"delta.enableChangeDataFeed": "true"}


def make(directory: Path, name: str) -> TableBuilder:
    """Return a table of two versions, of three files each, whose id is its name."""
    metadata: dict[str, Any] = {"id": name, "configuration": _FEED_ON}
    table = numbers(directory, protocol=_FEED, metadata=metadata)
    if name != "first":
        table.on(STARTED_AT + 100 * STEP)
    for version in range(2):
        table.commit(*(add(f"{name}-{version}-{number}") for number in range(3)))
    return table


def make_anew(table: TableBuilder, name: str) -> TableBuilder:
    shutil.rmtree(table.directory)
    return make(table.directory.parent, name)


async def test_the_pages_of_a_table_do_not_go_on_with_the_files_of_another_in_its_place(tmp_path):
    world, table = World(), make(tmp_path, "first")
    token = (await world.query(table, max_files=2)).end.next_page_token

    remade = make_anew(table, "second")

    assert (await world.query(remade, max_files=2)).head.version == 1
    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await world.query(remade, max_files=2, page_token=token)


async def test_the_pages_of_changes_do_not_go_on_with_those_of_another_table(tmp_path):
    world, table = World(), make(tmp_path, "first")
    stream = (await world.query(table, max_files=2, starting_version=0)).end.next_page_token
    feed = (await world.changes(table, max_files=2, start=at_version(0))).end.next_page_token

    remade = make_anew(table, "second")

    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await world.query(remade, max_files=2, starting_version=0, page_token=stream)
    with pytest.raises(InvalidArgument, match=_BAD_PAGE):
        await world.changes(remade, max_files=2, start=at_version(0), page_token=feed)


async def test_a_refresh_is_not_answered_with_the_files_of_another_table_in_its_place(tmp_path):
    world, table = World(), make(tmp_path, "first")
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token

    remade = make_anew(table, "second")

    for process in (world, World(world.grants)):
        with pytest.raises(InvalidArgument, match=_BAD_REFRESH):
            await process.query(remade, refresh_token=token)
        # Nor by way of its pages.
        with pytest.raises(InvalidArgument, match=_BAD_REFRESH):
            await process.query(remade, refresh_token=token, max_files=2)
    assert (await world.query(remade)).metadata["id"] == "second"


async def test_a_refresh_of_a_version_that_the_table_in_its_place_does_not_have_is_refused(tmp_path):
    world, table = World(), make(tmp_path, "first").commit(add("third"))
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token

    remade = make_anew(table, "second")

    words = f"version 2 of table {GRANT.table} is after the latest available version 1"
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        await world.query(remade, refresh_token=token)


async def test_a_refresh_goes_on_where_the_table_is_still_the_one_that_it_was(tmp_path):
    world, table = World(), make(tmp_path, "first")
    token = (await world.query(table, include_refresh_token=True)).end.refresh_token
    # Its id is that of the version that is pinned, whatever it is by now.
    table.commit({"metaData": {**table.metadata, "id": "other"}})

    answer = await world.query(table, refresh_token=token, include_refresh_token=True)
    again = await world.query(table, refresh_token=answer.end.refresh_token)

    assert (answer.head.version, answer.metadata["id"]) == (1, "first")
    assert (again.head.version, again.metadata["id"]) == (1, "first")


async def test_pages_go_on_where_the_table_is_still_the_one_that_it_was(tmp_path):
    world, table = World(), make(tmp_path, "first")
    token = (await world.query(table, max_files=2)).end.next_page_token
    # Its id is that of the version that the pages are of, whatever it is by now.
    table.commit({"metaData": {**table.metadata, "id": "other"}})

    answers = await world.query_pages(table, max_files=2, page_token=token)

    assert [len(answer.files) for answer in answers] == [2, 2]
    assert {answer.metadata["id"] for answer in answers} == {"first"}


async def test_a_range_that_a_time_begins_begins_where_its_first_page_did(tmp_path):
    world, table = World(), make(tmp_path, "first")
    start = at_time("2000-01-01T00:00:00Z")
    token = (await world.changes(table, max_files=2, start=start)).end.next_page_token
    table.checkpoint()
    (table.log / commit_name(0)).unlink()

    assert (await world.changes(table, max_files=2, start=start)).head.version == 1
    with pytest.raises(InvalidArgument, match="no longer holds the changes of version 0"):
        await world.changes(table, max_files=2, start=start, page_token=token)


async def test_the_version_of_a_page_is_that_of_its_token_whatever_else_is_pinned(tmp_path):
    world, table = World(), make(tmp_path, "first")
    token = (await world.query(table, max_files=2)).end.next_page_token
    table.commit(add("later"))
    refresh = (await world.query(table, include_refresh_token=True)).end.refresh_token

    answer = await world.query(table, max_files=2, page_token=token, refresh_token=refresh)

    assert answer.head.version == 1
