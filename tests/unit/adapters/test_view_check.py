"""Columns of views, asked of the logs of their tables."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters import table_columns, view_check
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.table_columns import read_columns
from gateway.adapters.view_check import check_view_columns
from gateway.config.schema import Config, reads_tables
from gateway.config.views.compiling import Views
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from tests.builders import Field, TableBuilder

FIELDS = (Field("number", "long"), Field("Region", "string"))


def config_of(lake: Path, *sql: str, **others: Any) -> Config:
    tables = [{"name": name, "location": str(lake / name)} for name in ("t", "gone")]
    views = [
        {"name": f"v{number}", "sql": text, "location": str(lake / "views" / str(number))}
        for number, text in enumerate(sql)
    ]
    schema = {"name": "d", "tables": tables, "views": views}
    storages = [{"name": "lake", "prefix": str(lake), "vendor": "local"}]
    return Config.model_validate(
        {"shares": [{"name": "s", "schemas": [schema]}], "storages": storages, **others}
    )


async def check(config: Config):
    async with OpenStorages(config, StorageProcess(public_url="http://x")) as storages:
        return await check_view_columns(config, storages)


async def test_a_column_that_is_not_there_is_a_fault_with_the_nearest_one(tmp_path):
    TableBuilder(tmp_path / "t", FIELDS).append([{"number": 1, "Region": "x"}])

    checked = await check(config_of(tmp_path, "select number from s.d.t", "select regin from s.d.t"))

    (fault,) = checked.faults
    assert str(fault) == (
        "shares[0].schemas[0].views[1].sql: no table here has the column 'regin'; did you mean Region?"
    )
    assert checked.warnings == ()


async def test_a_table_that_cannot_be_read_is_a_warning_that_names_it(tmp_path):
    checked = await check(config_of(tmp_path, "select what from s.d.gone"))

    assert checked.faults == ()
    (warning,) = checked.warnings
    assert warning == (
        "shares[0].schemas[0].views[0]: the columns of s.d.gone are not checked: "
        "there is no table at its location"
    )


async def test_the_schema_is_that_of_the_latest_version_with_and_without_a_checkpoint(tmp_path):
    table = TableBuilder(tmp_path / "t", FIELDS).append([{"number": 1, "Region": "x"}])
    table.checkpoint()
    config = config_of(tmp_path, "select later from s.d.t")
    assert (await check(config)).faults

    table.add_columns(Field("later", "string"))

    assert not (await check(config)).faults
    table.checkpoint()
    table.append([{"number": 2, "Region": "x", "later": "y"}])
    assert not (await check(config)).faults


@pytest.mark.parametrize("has_checkpoint", [False, True])
async def test_nothing_long_is_read_where_requests_are_served(tmp_path, monkeypatch, has_checkpoint):
    table = TableBuilder(tmp_path / "t", FIELDS).append([{"number": 1, "Region": "x"}])
    if has_checkpoint:
        table.checkpoint()
    threads: dict[str, threading.Thread] = {}

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def watched(*args: Any) -> Any:
            threads[name] = threading.current_thread()
            return real(*args)

        monkeypatch.setattr(owner, name, watched)

    watch(Views, "check_columns")
    watch(view_check, "Views")
    watch(table_columns, "_schema_of" if has_checkpoint else "_schema_in")

    assert not (await check(config_of(tmp_path, "select number from s.d.t"))).faults

    assert len(threads) == 3
    assert threading.current_thread() not in threads.values()


async def test_no_more_than_the_patience_is_waited():
    class Slow:
        def find(self, location):
            return self

        reader = property(lambda self: self)

        async def read_log(self, location, name):
            await asyncio.sleep(60)

    name = TableName("s", "d", "t")
    found = await read_columns([(name, parse_location("s3://x/y"))], Slow(), timedelta(milliseconds=20))

    assert "took too long" in found.unread[name.key]


@pytest.mark.parametrize(("run", "expected"), [(["snapshot"], True), (["catalog"], False)])
def test_only_a_process_that_may_read_logs_does(tmp_path, run, expected):
    config = config_of(tmp_path, "select 1 as a from s.d.t", services={"run": run})

    assert reads_tables(config) is expected
    assert not reads_tables(config_of(tmp_path))
