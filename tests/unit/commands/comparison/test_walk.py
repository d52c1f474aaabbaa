from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.commands.comparison.client import Refused, SharingClient, Unreachable
from gateway.commands.comparison.difference import Finding, Weight
from gateway.commands.comparison.tables import Compared, Servers, TableComparison
from gateway.commands.comparison.walk import NotComparable, Result, Selection, Walk
from gateway.domain.name import TableName


class Client:
    """Lists shares of the form ``{"sales": ["q1.orders", ...]}``."""

    def __init__(self, shares: dict[str, list[str]], error: Exception | None = None) -> None:
        self._shares = shares
        self._error = error

    async def list_shares(self) -> list[dict[str, Any]]:
        if isinstance(self._error, Unreachable):
            raise self._error
        return [{"name": name} for name in self._shares]

    async def list_schemas(self, share: str) -> list[dict[str, Any]]:
        return [{"name": path.split(".")[0]} for path in self._shares[share]]

    async def list_tables(self, share: str) -> list[dict[str, Any]]:
        if self._error:
            raise self._error
        pairs = [path.split(".") for path in self._shares[share]]
        return [{"schema": schema, "name": table} for schema, table in pairs]


class Tables:
    def __init__(self) -> None:
        self.compared: list[str] = []

    async def compare(self, old: TableName, new: TableName) -> Compared:
        self.compared.append(f"{old} {new}")
        if old.table == "deep":
            raise RecursionError
        finding = Finding(subject=f"table {old}", what="version", old=1, new=2)
        return Compared(findings=(finding,), is_read=old.table != "closed")


async def walk(
    old: Client, new: Client, selection: Selection | None = None
) -> tuple[Result, Tables, list[tuple[int, int]]]:
    tables, seen = Tables(), list[tuple[int, int]]()
    servers = Servers(old=cast("SharingClient", old), new=cast("SharingClient", new))
    made = Walk(
        servers,
        selection or Selection(),
        cast("TableComparison", tables),
        lambda _, done, total: seen.append((done, total)),
    )
    return await made.run(), tables, seen


def told(result: Result) -> list[str]:
    return [f"{finding.subject}: {finding.what} {finding.detail}".strip() for finding in result.findings]


async def test_tables_of_both_servers_are_compared_and_counted():
    shares = {"sales": ["q1.orders", "q2.orders"], "hr": ["x.people"]}
    result, tables, seen = await walk(Client(shares), Client(shares))
    assert result.tables == 3
    assert len(tables.compared) == 3
    assert seen == [(1, 3), (2, 3), (3, 3)]


async def test_what_one_server_lacks_is_told_and_not_compared():
    old = Client({"sales": ["q1.orders", "q2.orders"], "hr": ["x.people"]})
    new = Client({"sales": ["q1.orders", "q1.extra"]})
    result, tables, _ = await walk(old, new)
    assert told(result)[:4] == [
        "servers: share hr only in old",
        "share sales: schema q2 only in old",
        "share sales: table q1.extra only in new",
        "share sales: table q2.orders only in old",
    ]
    assert tables.compared == ["sales.q1.orders sales.q1.orders"]


async def test_tables_are_matched_in_any_case():
    _, tables, _ = await walk(Client({"Sales": ["Q1.orders"]}), Client({"sales": ["q1.ORDERS"]}))
    assert tables.compared == ["Sales.Q1.orders sales.q1.ORDERS"]


async def test_a_share_that_cannot_be_listed_is_a_difference():
    shares = {"sales": ["q1.orders"]}
    result, _, _ = await walk(Client(shares), Client(shares, Refused(500, "oops")))
    assert told(result) == ["share sales: all-tables answered in old, 500 oops in new"]
    assert result.findings[0].weight is Weight.DIFFERENCE


async def test_a_server_that_does_not_list_its_shares_cannot_be_compared():
    with pytest.raises(NotComparable, match="the new server does not list its shares: cannot connect"):
        await walk(Client({}), Client({}, Unreachable("cannot connect")))


async def test_only_selected_shares_and_tables_are_compared():
    shares = {"sales": ["q1.orders", "q2.orders"], "hr": ["x.people"], "it": ["y.z"]}
    selection = Selection(shares=frozenset({"hr"}), tables=(TableName("Sales", "Q2", "Orders"),))
    _, tables, _ = await walk(Client(shares), Client(shares), selection)
    assert sorted(tables.compared) == ["hr.x.people hr.x.people", "sales.q2.orders sales.q2.orders"]


@pytest.mark.parametrize(
    ("selection", "reason"),
    [
        (Selection(shares=frozenset({"it"})), "neither server has a share it"),
        (Selection(tables=(TableName("it", "a", "b"),)), "neither server has a share it"),
        (Selection(tables=(TableName("sales", "a", "b"),)), r"neither server has a table sales\.a\.b"),
    ],
)
async def test_a_selection_that_neither_server_has_is_refused(selection, reason):
    shares = {"sales": ["q1.orders"]}
    with pytest.raises(NotComparable, match=reason):
        await walk(Client(shares), Client(shares), selection)


async def test_a_selected_table_whose_share_one_server_lacks_is_a_difference():
    selection = Selection(tables=(TableName("hr", "x", "people"),))
    result, _, _ = await walk(Client({"hr": ["x.people"]}), Client({}), selection)
    assert told(result) == ["servers: share hr only in old"]


async def test_a_table_that_is_nested_too_deeply_does_not_stop_the_others():
    shares = {"sales": ["q1.deep", "q1.orders"]}
    result, _, _ = await walk(Client(shares), Client(shares))
    assert told(result) == [
        "table sales.q1.deep: metadata nested too deeply",
        "table sales.q1.orders: version",
    ]


async def test_tables_that_could_be_read_from_neither_server_are_counted_apart():
    shares = {"sales": ["q1.closed", "q1.orders", "q2.closed"]}
    result, _, _ = await walk(Client(shares), Client(shares))
    assert (result.tables, result.unread) == (1, 2)
