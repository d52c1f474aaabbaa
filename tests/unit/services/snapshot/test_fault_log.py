from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from gateway.domain.log import commit_name
from gateway.errors import GatewayError, InvalidArgument, Unsupported
from tests.builders import numbers, rows
from tests.unit.services.snapshot.world import World, at_version


@pytest.fixture
def world():
    return World()


@pytest.fixture
def table(tmp_path):
    return numbers(tmp_path).append(rows([1, 2])).append(rows([3])).append(rows([4]))


@pytest.fixture
def warnings(caplog):
    def told() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.levelno == logging.WARNING]

    return told


async def refused(ask) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await ask
    return caught.value


async def test_damage_is_told_the_operator_once_with_its_place_and_the_recipient_by_name(
    world, table, warnings
):
    (table.log / commit_name(1)).write_text("{")

    for ask in (world.metadata(table), world.query(table), world.metadata(table)):
        error = await refused(ask)
        assert type(error) is Unsupported
        assert error.message.startswith(f"table retail.sales.orders: its log is damaged: {commit_name(1)} ")

    (record,) = warnings()
    facts = record.__dict__
    assert record.getMessage() == "a table's log cannot be read"
    assert (facts["location"], facts["file"]) == (str(table.directory), commit_name(1))
    assert facts["table"] == "retail.sales.orders"


async def test_a_gap_is_told_once_whichever_version_is_asked_for(world, table, warnings):
    (table.log / commit_name(1)).unlink()

    for ask in (world.query(table), world.query(table, at=at_version(1))):
        assert "its log lacks" in (await refused(ask)).message

    assert [record.__dict__["file"] for record in warnings()] == [commit_name(1)]


async def test_a_table_without_a_log_is_told_once(world, tmp_path, warnings):
    table = numbers(tmp_path)

    for ask in (world.version(table), world.metadata(table)):
        error = await refused(ask)
        assert type(error) is InvalidArgument
        assert error.error_code == "RESOURCE_DOES_NOT_EXIST"
        assert error.message == (
            "table files missing: there is no Delta log at the location of table retail.sales.orders"
        )

    (record,) = warnings()
    assert record.__dict__["location"] == str(table.directory)


async def test_another_fault_and_one_that_stays_are_told_again(world, table, warnings):
    commit = table.log / commit_name(1)
    whole = commit.read_bytes()
    commit.write_text("{")
    await refused(world.metadata(table))
    commit.write_bytes(whole)
    (table.log / commit_name(0)).write_text("{")
    await refused(world.metadata(table))
    assert [record.__dict__["file"] for record in warnings()] == [commit_name(1), commit_name(0)]

    world.grants.now += timedelta(hours=2)
    await refused(world.metadata(table))
    assert len(warnings()) == 3


async def test_a_version_that_was_cleaned_up_is_no_fault(world, table, warnings):
    table.checkpoint().clean_up(before=2)

    assert (
        "table retail.sales.orders: its log lacks"
        in (await refused(world.query(table, at=at_version(1)))).message
    )
    assert warnings() == []


async def test_a_log_without_its_beginning_is_a_fault(world, table, warnings):
    (table.log / commit_name(0)).unlink()

    await refused(world.metadata(table))
    assert len(warnings()) == 1


async def test_changes_name_the_table_too(world, table, warnings):
    (table.log / commit_name(1)).write_text("{")

    error = await refused(world.query(table, starting_version=1))
    assert error.message.startswith("table retail.sales.orders: its log is damaged")
    assert len(warnings()) == 1
