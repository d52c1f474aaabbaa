from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.commands.comparison.answer import Format, TableAnswer
from gateway.commands.comparison.client import Refused, SharingClient
from gateway.commands.comparison.content import ContentComparison
from gateway.commands.comparison.difference import Weight
from gateway.commands.comparison.tables import Compared, Data, Servers, TableComparison
from gateway.domain.name import TableName

ORDERS = TableName("sales", "q1", "orders")


class Client:
    """Answers with the given versions, one a call; the last one stays."""

    def __init__(self, *versions: int, refuse: bool = False, format_: Format = Format.PARQUET) -> None:
        self._versions = list(versions)
        self._refuse = refuse
        self._format = format_
        self.asked: list[TableName] = []

    async def get_version(self, name: TableName) -> int:
        self.asked.append(name)
        if self._refuse:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST: gone")
        return self._versions.pop(0) if len(self._versions) > 1 else self._versions[0]

    async def get_metadata(self, name: TableName) -> TableAnswer:
        version = await self.get_version(name)
        return TableAnswer(version=version, protocol={}, metadata={"id": "m"}, format=self._format)

    query = get_metadata


class Sleeps(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


def comparison(old: Client, new: Client, sleeps: Sleeps, data: Data = Data.FILES) -> TableComparison:
    servers = Servers(old=cast("SharingClient", old), new=cast("SharingClient", new))
    return TableComparison(servers, cast("ContentComparison", None), data, sleep=sleeps)


def summary(findings: tuple[Any, ...]) -> list[tuple[str, object, object]]:
    return [(finding.what, finding.old, finding.new) for finding in findings]


async def test_equal_tables_have_no_findings(sleeps):
    assert await comparison(Client(3), Client(3), sleeps).compare(ORDERS, ORDERS) == Compared(findings=())
    assert sleeps == []


async def test_another_version_is_one_difference(sleeps):
    findings = (await comparison(Client(3), Client(4), sleeps).compare(ORDERS, ORDERS)).findings
    assert summary(findings) == [("version", 3, 4)]


async def test_a_table_that_changed_while_it_was_read_is_read_again(sleeps):
    compared = await comparison(Client(3, 4), Client(3, 3, 4), sleeps).compare(ORDERS, ORDERS)
    assert compared.findings == ()
    assert sleeps == [1.0]


async def test_a_table_that_keeps_changing_is_told_of(sleeps):
    findings = (await comparison(Client(*range(99)), Client(5), sleeps).compare(ORDERS, ORDERS)).findings
    assert len(sleeps) == 3
    assert findings[-1].weight is Weight.NOTE
    assert "changes while it is read" in findings[-1].detail


async def test_each_server_is_asked_by_its_own_spelling(sleeps):
    old, new, other = Client(3), Client(3), TableName("SALES", "q1", "Orders")
    await comparison(old, new, sleeps).compare(ORDERS, other)
    assert set(old.asked) == {ORDERS}
    assert set(new.asked) == {other}


async def test_a_table_that_one_server_refuses_is_a_difference_for_each_call(sleeps):
    findings = (await comparison(Client(3), Client(refuse=True), sleeps).compare(ORDERS, ORDERS)).findings
    assert [finding.what for finding in findings] == ["version", "metadata", "query"]
    assert all(finding.weight is Weight.DIFFERENCE for finding in findings)


async def test_without_data_there_is_no_query(sleeps):
    old = Client(3)
    await comparison(old, Client(3), sleeps, Data.NONE).compare(ORDERS, ORDERS)
    assert len(old.asked) == 2


async def test_a_table_that_both_servers_refuse_is_not_read(sleeps):
    compared = await comparison(Client(refuse=True), Client(refuse=True), sleeps).compare(ORDERS, ORDERS)
    assert not compared.is_read


async def test_a_table_that_one_server_answers_for_is_read(sleeps):
    compared = await comparison(Client(3), Client(refuse=True), sleeps).compare(ORDERS, ORDERS)
    assert compared.is_read


async def test_another_response_format_is_one_difference(sleeps):
    other = Client(3, format_=Format.DELTA)
    findings = (await comparison(Client(3), other, sleeps).compare(ORDERS, ORDERS)).findings
    assert summary(findings) == [("response format", "parquet", "delta")]
