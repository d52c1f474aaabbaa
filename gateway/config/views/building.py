"""The queries of all views, for whoever has checked the configuration already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.config.faults import Fault
from gateway.config.report import Report
from gateway.config.schema import Config, has_views

if TYPE_CHECKING:
    from gateway.config.views.binding import Key
    from gateway.config.views.compiling import Compiled


def compile_views(config: Config) -> tuple[Mapping[Key, Compiled], tuple[Fault, ...]]:
    """Return the queries by the views' folded names, and what is wrong with those that have none."""
    if not has_views(config):
        return {}, ()
    from gateway.config.views.compiling import Views  # noqa: PLC0415 -- sqlglot is slow to import

    report = Report()
    compiled = Views(config, report).compile()
    return compiled, report.faults({})
