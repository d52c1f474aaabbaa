"""The rules and dashboards as they lie in deploy/, and what they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from tests.problems import place
from tests.promql import grouped_labels
from tests.repository import ROOT

PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yaml"))
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))

# Grafana's own variables, with a value that each may take.
_GRAFANA = {"$__rate_interval": "1m", "$__interval": "1m", "$__range": "1h"}


@dataclass(frozen=True, slots=True)
class Expression:
    """One query, and where it stands."""

    where: str
    text: str


@cache
def rules() -> Sequence[Mapping[str, Any]]:
    return [
        rule
        for file in RULES
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]


def alerts() -> Mapping[str, Mapping[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def alert_place(name: str) -> str:
    """Return ``path:line: name`` of the rule of an alert."""
    pattern = rf"- alert: {name}$"
    (file,) = [file for file in RULES if re.search(pattern, file.read_text(), re.MULTILINE)]
    return f"{place(file, pattern)}: {name}"


def recorded() -> Mapping[str, set[str]]:
    """Return the labels of each series that a rule records."""
    found: dict[str, set[str]] = {}
    for rule in rules():
        if "record" in rule:
            labels = grouped_labels(rule["expr"]) | set(rule.get("labels", ()))
            found.setdefault(rule["record"], set()).update(labels)
    return found


@cache
def dashboards() -> Mapping[str, Mapping[str, Any]]:
    return {file.stem: json.loads(file.read_text()) for file in DASHBOARDS}


def panels(board: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def rule_expressions() -> Sequence[Expression]:
    return [Expression(rule.get("alert") or rule["record"], rule["expr"]) for rule in rules()]


def panel_expressions() -> Sequence[Expression]:
    """Return the queries of all panels, as they are when everything is chosen."""
    return [
        Expression(f"{name}: {panel['title']} {target['refId']}", chosen(target["expr"], board))
        for name, board in dashboards().items()
        for panel in panels(board)
        for target in panel["targets"]
    ]


def chosen(expr: str, board: Mapping[str, Any], rate_interval: str = "1m") -> str:
    """Return an expression with all variables of its dashboard at their widest, among our own processes."""
    values = _GRAFANA | {"$__rate_interval": rate_interval} | dict(_widest(board))
    for name in sorted(values, key=len, reverse=True):
        expr = expr.replace(name, values[name])
    return expr


def _widest(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for variable in board["templating"]["list"]:
        yield f"${variable['name']}", variable.get("allValue", ".+")
