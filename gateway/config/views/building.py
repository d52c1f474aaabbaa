"""The queries of all views, for whoever has checked the configuration already."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.config.faults import Fault
from gateway.config.report import Report
from gateway.config.schema import Config
from gateway.config.views.binding import Key
from gateway.config.views.compiling import Compiled, Views


def compile_views(config: Config) -> tuple[Mapping[Key, Compiled], tuple[Fault, ...]]:
    """Return the queries by the views' folded names, and what is wrong with those that have none."""
    if not any(schema.views for share in config.shares for schema in share.schemas):
        return {}, ()
    report = Report()
    compiled = Views(config, report).compile()
    return compiled, report.faults({})
