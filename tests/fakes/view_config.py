"""Configurations with views, as short as tests want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.config.faults import Fault
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.config.views.compiling import Compiled, Views

TABLES = ("t", "u", "v")


def view_config(*views: Mapping[str, Any], tables: Sequence[str] = TABLES) -> Config:
    """Return a configuration with tables ``s.d.t`` and so on, and views beside them; ``s.e.t`` is another."""
    placed = [{"location": f"s3://lake/views/{view['name']}", **view} for view in views]
    named = [{"name": name, "location": f"s3://lake/{name}"} for name in tables]
    schema = {"name": "d", "tables": named, "views": placed}
    other = {"name": "e", "tables": [{"name": "t", "location": "s3://lake/e/t"}]}
    return Config.model_validate({"shares": [{"name": "s", "schemas": [schema, other]}]})


def compile_sql(sql: str) -> Compiled:
    """Return the view of a query over ``s.d.t`` and its neighbours; raise with what is wrong with it."""
    report = Report()
    compiled = Views(view_config({"name": "it", "sql": sql}), report).compile()
    if faults := report.faults({}):
        raise AssertionError("; ".join(map(str, faults)))
    return compiled["s", "d", "it"]


def faults_of(*views: Mapping[str, Any], columns: Mapping[str, Sequence[str]] | None = None) -> list[Fault]:
    """Return what is wrong with views, given the columns of tables."""
    report = Report()
    read = Views(view_config(*views), report)
    read.compile()
    read.check_columns({("s", "d", name): tuple(names) for name, names in (columns or {}).items()})
    return list(report.faults({}))


def words_of(sql: str, columns: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return what is wrong with one query, in words."""
    return "\n".join(map(str, faults_of({"name": "it", "sql": sql}, columns=columns)))
