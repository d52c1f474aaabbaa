"""Columns that views lack are told of, and hold up nothing."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters import view_check
from gateway.bootstrap import _Process
from gateway.bootstrap.given import Given
from gateway.config.schema import Config
from tests.builders import Field, TableBuilder
from tests.waiting import eventually_async


def config_of(directory: Path, *columns: str, **others: Any) -> Config:
    lake = directory / "lake"
    views = [
        {
            "name": f"v_{column}",
            "from": "s.d.t",
            "columns": [column],
            "location": str(lake / "views" / column),
        }
        for column in columns
    ]
    schema = {"name": "d", "tables": [{"name": "t", "location": str(lake / "t")}], "views": views}
    settings = {
        "stateDir": str(directory / "own"),
        "shares": [{"name": "s", "schemas": [schema]}],
        "storages": [{"name": "lake", "prefix": str(lake), "vendor": "local"}],
        **others,
    }
    return Config.model_validate(settings)


@pytest.fixture
async def process(tmp_path):
    TableBuilder(tmp_path / "lake" / "t", (Field("a", "long"),)).append([{"a": 1}])
    async with AsyncExitStack() as stack:
        process = _Process(config_of(tmp_path, "a"), Given(), stack)
        await process.open()
        yield process


async def test_a_column_that_is_gone_holds_up_no_changed_configuration_and_is_told_of(
    process, tmp_path, caplog
):
    before = process._catalog.generation

    generation = await process._apply(config_of(tmp_path, "gone", recipients=[{"name": "ann"}]))
    await eventually_async(lambda: "views that cannot be refreshed" in caplog.text)

    assert generation == process._catalog.generation != before
    assert "has no column 'gone'" in caplog.text


async def test_a_newer_configuration_ends_the_look_at_the_one_before(process, tmp_path, monkeypatch):
    async def for_ever(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(view_check, "check_view_columns", for_ever)
    await process._apply(config_of(tmp_path, "a"))
    first = process._checking
    await process._apply(config_of(tmp_path))

    assert first.cancelled()


async def test_a_look_that_fails_is_logged_and_ends_nothing_else(process, tmp_path, monkeypatch, caplog):
    async def broken(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(view_check, "check_view_columns", broken)
    await process._apply(config_of(tmp_path, "a"))
    await process._checking

    assert "the columns of views cannot be checked" in caplog.text
