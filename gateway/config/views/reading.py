"""A view's entry as a syntax tree, by whichever of its two ways it was written."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import ViewConfig
from gateway.config.views.dialect import parse_condition, parse_query
from gateway.config.views.grammar import check_expression, check_grammar
from gateway.config.views.problem import Problem, ViewError

_PARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadView:
    """A query as it was written, and where the names in it stand."""

    tree: exp.Expr
    # Where its tables and its columns are named.
    tables_at: Path
    columns_at: Path


def read_view(config: ViewConfig, path: Path, report: Report) -> ReadView | None:
    """Return the query of an entry, or report all that no query may have."""
    if bool(config.sql) == bool(config.source):
        report.fault(path, "needs a query: either sql, or from with columns and filter")
        return None
    if config.sql:
        return _read_sql(config, (*path, "sql"), report)
    return _read_parts(config, path, report)


def report_problems(problems: list[Problem], path: Path, report: Report) -> bool:
    """Report what is wrong at a path, and tell whether anything is."""
    distinct = list(dict.fromkeys(problems))
    if len(distinct) == 1:
        report.fault(path, distinct[0].message, suggestion=distinct[0].suggestion)
    elif distinct:
        report.fault(path, "; ".join(map(str, distinct)))
    return bool(distinct)


def table_of(name: str) -> exp.Table | None:
    """Return the table of a name as in ``from``: only a share's name may have dots."""
    parts = name.rsplit(".", _PARTS - 1)
    if len(parts) != _PARTS or not all(parts):
        return None
    share, schema, table = (exp.to_identifier(part, quoted=True) for part in parts)
    return exp.Table(this=table, db=schema, catalog=share)


def _read_sql(config: ViewConfig, path: Path, report: Report) -> ReadView | None:
    for name in ("columns", "filter"):
        if getattr(config, name):
            report.fault((*path[:-1], name), "belongs to from; in a view with sql, write it there")
    try:
        tree = parse_query(config.sql)
    except ViewError as exc:
        report_problems(list(exc.problems), path, report)
        return None
    if report_problems(list(check_grammar(tree)), path, report):
        return None
    return ReadView(tree=tree, tables_at=path, columns_at=path)


def _read_parts(config: ViewConfig, path: Path, report: Report) -> ReadView | None:
    table = table_of(config.source)
    if table is None:
        report.fault(
            (*path, "from"), "must be the name of a table or view: share.schema.table", config.source
        )
    columns = [_column(name, table) for name in config.columns]
    wrong = [
        report_problems(list(check_expression(column)), (*path, "columns", number), report)
        for number, column in enumerate(columns)
    ]
    query = exp.Select(expressions=columns or [exp.Star()], from_=exp.From(this=table))
    if config.filter:
        condition = _read_filter(config.filter, (*path, "filter"), report)
        if condition is None:
            return None
        query.set("where", exp.Where(this=condition))
    if table is None or any(wrong):
        return None
    at = (*path, "filter") if config.filter and not columns else (*path, "columns")
    return ReadView(tree=query, tables_at=(*path, "from"), columns_at=at)


def _column(name: str, table: exp.Table | None) -> exp.Column:
    # With its table: some words mean something else where they stand alone.
    qualifier = table.this.copy() if table is not None else None
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=qualifier)


def _read_filter(text: str, path: Path, report: Report) -> exp.Expr | None:
    try:
        condition = parse_condition(text)
    except ViewError as exc:
        report_problems(list(exc.problems), path, report)
        return None
    return None if report_problems(list(check_expression(condition)), path, report) else condition
