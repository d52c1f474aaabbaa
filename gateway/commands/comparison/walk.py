"""Goes through the shares, schemas and tables of two servers and compares what it meets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.commands.comparison.answer import Json
from gateway.commands.comparison.client import SharingError
from gateway.commands.comparison.difference import (
    SHARE_FIELDS,
    TABLE_FIELDS,
    Finding,
    compare_answers,
    compare_fields,
    compare_names,
)
from gateway.commands.comparison.tables import Compared, Servers, TableComparison
from gateway.domain.name import TableName, fold

_AT_ONCE: Final = 4

# Told which table of how many was compared.
OnTable = Callable[[TableName, int, int], None]
_Names = tuple[TableName, TableName]


class NotComparable(Exception):
    """A comparison that cannot begin, with what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to compare; empty selects everything."""

    shares: frozenset[str] = frozenset()
    tables: tuple[TableName, ...] = ()

    def has_share(self, share: str) -> bool:
        named = fold(share) in self.shares or any(fold(share) == name.key[0] for name in self.tables)
        return named or self.is_everything

    def has_whole_share(self, share: str) -> bool:
        return fold(share) in self.shares or self.is_everything

    def has_table(self, name: TableName) -> bool:
        return self.has_whole_share(name.share) or any(name.key == wanted.key for wanted in self.tables)

    @property
    def is_everything(self) -> bool:
        return not self.shares and not self.tables


@dataclass(frozen=True, slots=True)
class Result:
    findings: tuple[Finding, ...]
    # How many were compared, and how many could be read from neither server.
    tables: int
    unread: int


class Walk:
    def __init__(
        self, servers: Servers, selection: Selection, tables: TableComparison, on_table: OnTable
    ) -> None:
        self._servers = servers
        self._selection = selection
        self._tables = tables
        self._on_table = on_table
        self._found: set[tuple[str, ...]] = set()

    async def run(self) -> Result:
        old, new = await self._list_shares()
        findings = list(compare_names("servers", "share", _names(old), _names(new)))
        pairs: list[_Names] = []
        matched = _matched(old, new)
        for one, two in matched:
            found, names = await self._compare_share(one, two)
            findings += found
            pairs += names
        self._check_selection(frozenset(fold(one["name"]) for one, _ in matched))
        compared = await self._compare_tables(pairs)
        findings += [finding for one in compared for finding in one.findings]
        unread = sum(not one.is_read for one in compared)
        return Result(tuple(findings), len(pairs) - unread, unread)

    async def _list_shares(self) -> tuple[list[Json], list[Json]]:
        answers = await self._servers.ask(lambda one: one.list_shares(), lambda two: two.list_shares())
        chosen = []
        for side, answer in zip(("old", "new"), answers, strict=True):
            if isinstance(answer, SharingError):
                raise NotComparable(f"the {side} server does not list its shares: {answer}")
            chosen.append([share for share in answer if self._selection.has_share(share["name"])])
            self._found |= {(fold(share["name"]),) for share in answer}
        return chosen[0], chosen[1]

    async def _compare_share(self, old: Json, new: Json) -> tuple[list[Finding], list[_Names]]:
        subject = f"share {old['name']}"
        findings = list(compare_fields(subject, "", old, new, SHARE_FIELDS))
        if self._selection.has_whole_share(old["name"]):
            schemas = await self._servers.ask(
                lambda one: one.list_schemas(old["name"]), lambda two: two.list_schemas(new["name"])
            )
            found, both = compare_answers(subject, "schemas", *schemas)
            findings += found
            if both:
                findings += compare_names(subject, "schema", _names(both[0]), _names(both[1]))
        tables = await self._servers.ask(
            lambda one: one.list_tables(old["name"]), lambda two: two.list_tables(new["name"])
        )
        found, both = compare_answers(subject, "all-tables", *tables)
        findings += found
        if not both:
            return findings, []
        found, pairs = self._compare_entries(subject, (old["name"], both[0]), (new["name"], both[1]))
        return findings + found, pairs

    def _compare_entries(
        self, subject: str, old: tuple[str, list[Json]], new: tuple[str, list[Json]]
    ) -> tuple[list[Finding], list[_Names]]:
        olds, news = self._entries(*old), self._entries(*new)
        findings = list(compare_names(subject, "table", _paths(olds), _paths(news)))
        by_key = {name.key: (name, entry) for name, entry in news}
        pairs = []
        for name, entry in olds:
            if name.key in by_key:
                other, other_entry = by_key[name.key]
                findings += compare_fields(f"table {name}", "", entry, other_entry, TABLE_FIELDS)
                pairs.append((name, other))
        return findings, pairs

    def _entries(self, share: str, tables: Iterable[Json]) -> list[tuple[TableName, Json]]:
        entries = [(TableName(share, str(table.get("schema", "")), table["name"]), table) for table in tables]
        self._found |= {name.key for name, _ in entries}
        return [(name, entry) for name, entry in entries if self._selection.has_table(name)]

    def _check_selection(self, in_both: frozenset[str]) -> None:
        """Refuse what neither server has; what one has is a difference that is known by now."""
        wanted = {name.key[0]: name.share for name in self._selection.tables}
        wanted |= {share: share for share in self._selection.shares}
        for key, share in sorted(wanted.items()):
            if (key,) not in self._found:
                raise NotComparable(f"neither server has a share {share}")
        for name in self._selection.tables:
            if name.key not in self._found and name.key[0] in in_both:
                raise NotComparable(f"neither server has a table {name}")

    async def _compare_tables(self, pairs: Sequence[_Names]) -> list[Compared]:
        slots = asyncio.Semaphore(_AT_ONCE)
        done = 0

        async def compare(old: TableName, new: TableName) -> Compared:
            nonlocal done
            async with slots:
                try:
                    compared = await self._tables.compare(old, new)
                except RecursionError:
                    finding = Finding(subject=f"table {old}", what="metadata", detail="nested too deeply")
                    compared = Compared(findings=(finding,))
            done += 1
            self._on_table(old, done, len(pairs))
            return compared

        return await asyncio.gather(*(compare(old, new) for old, new in pairs))


def _names(items: Iterable[Json]) -> list[str]:
    return [item["name"] for item in items]


def _paths(entries: Iterable[tuple[TableName, Json]]) -> list[str]:
    return [f"{name.schema}.{name.table}" for name, _ in entries]


def _matched(old: Sequence[Json], new: Sequence[Json]) -> list[tuple[Json, Json]]:
    news = {fold(item["name"]): item for item in new}
    return [(item, news[fold(item["name"])]) for item in old if fold(item["name"]) in news]
