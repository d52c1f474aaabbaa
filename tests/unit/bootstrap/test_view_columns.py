"""Columns that views lack are logged, and hold up nothing."""

from __future__ import annotations

import asyncio

import pytest

from gateway.adapters import view_check
from gateway.config.schema import Config
from tests.builders import Field, TableBuilder
from tests.unit.bootstrap.process import run_process, view_config
from tests.waiting import eventually_async


@pytest.fixture
def config(tmp_path) -> Config:
    TableBuilder(tmp_path / "lake" / "t", (Field("a", "long"),)).append([{"a": 1}])
    return view_config(tmp_path, "a")


async def test_a_column_that_is_gone_holds_up_no_changed_configuration_and_is_told_of(
    config, tmp_path, caplog
):
    async with run_process(config, tmp_path) as process:
        before = process.generation

        await process.reload(view_config(tmp_path, "gone", recipients=[{"name": "ann"}]))
        await eventually_async(lambda: "views that cannot be refreshed" in caplog.text)

        assert process.generation != before
        assert "has no column 'gone'" in caplog.text


async def test_a_newer_configuration_ends_the_look_at_the_one_before(config, tmp_path, monkeypatch):
    begun: list[Config] = []
    cancelled: list[Config] = []

    async def for_ever(looked_at: Config, _: object) -> None:
        begun.append(looked_at)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(looked_at)
            raise

    async with run_process(config, tmp_path) as process:
        monkeypatch.setattr(view_check, "check_view_columns", for_ever)
        changed = view_config(tmp_path, "a", recipients=[{"name": "ann"}])
        await process.reload(changed)
        await eventually_async(lambda: begun)
        assert cancelled == []
        await process.reload(view_config(tmp_path))

        assert begun == cancelled == [changed]


async def test_a_look_that_fails_is_logged_and_ends_nothing_else(config, tmp_path, monkeypatch, caplog):
    async def broken(*_: object) -> None:
        raise RuntimeError("unforeseen")

    async with run_process(config, tmp_path) as process:
        monkeypatch.setattr(view_check, "check_view_columns", broken)
        await process.reload(view_config(tmp_path, "a"))
        await eventually_async(lambda: "the columns of views cannot be checked" in caplog.text)

        await process.reload(view_config(tmp_path))
