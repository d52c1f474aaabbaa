"""The views of a configuration: each with what it reads, and as Spark is given it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, ViewConfig
from gateway.config.views.appending import is_appendable, uses_clock
from gateway.config.views.binding import Expansion, Key, references
from gateway.config.views.columns import ColumnCheck, Columns
from gateway.config.views.dialect import write
from gateway.config.views.problem import ViewError, refuse
from gateway.config.views.reading import ReadView, read_view, report_problems
from gateway.config.views.written import check_written
from gateway.domain.name import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A view's query for Spark, and the names that it has there."""

    query: str
    # ``source_0`` and so on, in their order.
    sources: tuple[Key, ...]
    # ``property_0`` and so on, in their order.
    properties: tuple[str, ...]
    is_appendable: bool
    uses_clock: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: TableName
    path: Path
    # None for a table.
    view: ViewConfig | None = None


class Views:
    """All views of a configuration, read once."""

    def __init__(self, config: Config, report: Report) -> None:
        self._report = report
        self._entries: dict[Key, _Entry] = {}
        for entry in _entries(config):
            # Of two of one name, which is a fault of its own, the first.
            self._entries.setdefault(entry.name.key, entry)
        self._names = {key: str(entry.name) for key, entry in self._entries.items()}
        self._read: dict[Key, ReadView] = {}
        self._needs: dict[Key, list[Key]] = {}
        for key, entry in self._entries.items():
            if entry.view is not None and report.is_intact(entry.path):
                self._read_entry(key, entry, entry.view)
        self._drop_cycles()

    def compile(self) -> dict[Key, Compiled]:
        """Return the views that are sound and stand on sound ones."""
        compiled: dict[Key, Compiled] = {}
        for key, read in self._read.items():
            if not self._is_sound(key):
                continue
            try:
                compiled[key] = self._compile(read)
            except ViewError as exc:
                report_problems(list(exc.problems), read.columns_at, self._report)
        return compiled

    def check_columns(self, tables: Mapping[Key, tuple[str, ...]]) -> None:
        """Report columns that are not there, as far as the columns of tables are known."""
        known: dict[Key, Columns] = {}
        for key in self._read:
            if self._is_sound(key):
                self._find_columns(key, tables, known)

    def sources(self) -> tuple[TableName, ...]:
        """Return the tables that views read."""
        keys = {key for needs in self._needs.values() for key in needs if key not in self._read}
        return tuple(self._entries[key].name for key in sorted(keys) if self._entries[key].view is None)

    def path(self, key: Key) -> Path:
        return self._entries[key].path

    def readers(self, table: TableName) -> Path:
        """Return where the first view that reads a table stands."""
        return next(self._entries[key].path for key, needs in self._needs.items() if table.key in needs)

    def _read_entry(self, key: Key, entry: _Entry, view: ViewConfig) -> None:
        read = read_view(view, entry.path, self._report)
        if read is None:
            return
        keys, problems = references(read.tree, self._names)
        if not report_problems(problems, read.tables_at, self._report):
            self._read[key], self._needs[key] = read, keys

    def _drop_cycles(self) -> None:
        for key in list(self._read):
            cycle = self._find_cycle(key, [key])
            if cycle:
                words = " → ".join(self._names[step] for step in cycle)
                self._report.fault(self._read[key].tables_at, f"the view is made of itself: {words}")
        for key in [key for key in self._read if self._find_cycle(key, [key])]:
            del self._read[key]

    def _find_cycle(self, goal: Key, steps: list[Key]) -> list[Key]:
        """Return the shortest way from a view back to itself."""
        ways, seen = [steps], {goal}
        while ways:
            way = ways.pop(0)
            for key in self._needs.get(way[-1], ()):
                if key == goal:
                    return [*way, key]
                if key not in seen:
                    seen.add(key)
                    ways.append([*way, key])
        return []

    def _is_sound(self, key: Key) -> bool:
        """Tell whether a view can be read, and all views below it."""
        todo, seen = [key], {key}
        while todo:
            step = todo.pop()
            if self._entries[step].view is not None and step not in self._read:
                return False
            new = [need for need in self._needs.get(step, ()) if need not in seen]
            seen.update(new)
            todo += new
        return True

    def _compile(self, read: ReadView) -> Compiled:
        expansion = Expansion(find_view=lambda key: self._read[key].tree if key in self._read else None)
        tree = _expanded(expansion, read.tree)
        text = write(tree)
        check_written(text)
        return Compiled(
            query=text,
            sources=tuple(expansion.sources),
            properties=tuple(expansion.properties),
            is_appendable=is_appendable(tree),
            uses_clock=uses_clock(tree),
        )

    def _find_columns(
        self, key: Key, tables: Mapping[Key, tuple[str, ...]], known: dict[Key, Columns]
    ) -> Columns:
        if key not in self._read:
            return tables.get(key)
        if key not in known:
            check = ColumnCheck(lambda need: self._find_columns(need, tables, known))
            known[key] = check.check(self._read[key].tree)
            report_problems(check.problems, self._read[key].columns_at, self._report)
        return known[key]


def _entries(config: Config) -> Iterator[_Entry]:
    for i, share in enumerate(config.shares):
        for j, schema in enumerate(share.schemas):
            path: Path = ("shares", i, "schemas", j)
            for k, table in enumerate(schema.tables):
                name = TableName(share.name, schema.name, table.name)
                yield _Entry(name=name, path=(*path, "tables", k))
            for k, view in enumerate(schema.views):
                name = TableName(share.name, schema.name, view.name)
                yield _Entry(name=name, path=(*path, "views", k), view=view)


def _expanded(expansion: Expansion, tree: exp.Expr) -> exp.Expr:
    try:
        return expansion.expand(tree)
    except RecursionError as exc:
        raise refuse("stands on too many views, one upon the other") from exc
