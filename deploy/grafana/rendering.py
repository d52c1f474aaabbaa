"""Dashboards as the JSON that Grafana reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from deploy.grafana.panel import Board, Kind, Panel, Row, Variable

_SCHEMA = 39
_COLUMNS = 24
_HEIGHTS = {Kind.LINES: 8, Kind.NUMBER: 4, Kind.TABLE: 8}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Every process tells of itself by this metric, so its labels are those of all processes.
_SCOPE = (
    Variable("namespace", "sluice_build_info"),
    Variable("job", "sluice_build_info"),
    Variable("instance", "sluice_build_info"),
)
# Whose values are those of our own processes, and no others.
_OURS = frozenset({"job", "instance"})
_REFERENCES = "ABCDEFGH"


def render(board: Board) -> dict[str, Any]:
    return {
        "uid": f"sluice-{board.name}",
        "title": board.title,
        "description": board.description,
        "tags": ["sluice"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "utc",
        "links": [_links()],
        "templating": {"list": [_source(), *(_variable(one) for one in (*_SCOPE, *board.variables))]},
        "annotations": {"list": [_alerts()]},
        "panels": list(_panels(board.rows)),
    }


def _panels(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    number = y = 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": y},
            "panels": [],
        }
        y += 1
        x = height = 0
        for panel in row.panels:
            if x + panel.width > _COLUMNS:
                x, y = 0, y + height
            height = _HEIGHTS[panel.kind]
            number += 1
            yield _panel(panel, number, {"h": height, "w": panel.width, "x": x, "y": y})
            x += panel.width
        y += height


def _panel(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": list(_targets(panel)),
    }


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    is_table = panel.kind is Kind.TABLE
    for reference, query in zip(_REFERENCES, panel.queries, strict=False):
        yield {
            "refId": reference,
            "datasource": _SOURCE,
            "expr": query.promql,
            "legendFormat": query.legend,
            "instant": is_table,
            "range": not is_table,
            "format": "table" if is_table else "time_series",
        }


def _defaults(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit.value}
    if panel.kind is Kind.LINES:
        mode = "normal" if panel.stacked else "none"
        defaults["custom"] = {
            # From 0, but for what has gone below it: a certificate that has ended.
            "axisSoftMin": 0,
            "drawStyle": "line",
            "fillOpacity": 30 if panel.stacked else 8,
            "lineWidth": 1,
            "showPoints": "auto",
            "spanNulls": False,
            "stacking": {"mode": mode, "group": "A"},
        }
    if panel.steps is not None:
        steps = [{"color": colour, "value": value} for value, colour in panel.steps.items()]
        # Grafana's name of what is below the first step.
        steps[0]["value"] = None
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["color"] = {"mode": "thresholds"}
    return defaults


_OPTIONS: dict[Kind, dict[str, Any]] = {
    Kind.LINES: {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    Kind.NUMBER: {
        "colorMode": "value",
        "graphMode": "area",
        "justifyMode": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
    },
    Kind.TABLE: {"showHeader": True},
}


def _source() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
    }


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.name})"
    # Also what has no such label, as a namespace outside Kubernetes. But all jobs and replicas are all of
    # ours: up and process_* are also there of everything else that Prometheus watches.
    widest = {} if variable.name in _OURS else {"allValue": ".*"}
    return {
        "name": variable.name,
        "label": "replica" if variable.name == "instance" else variable.name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": variable.name},
        # On a change of the time range: replicas come and go.
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        **widest,
        "current": {"text": "All", "value": "$__all"},
        "hide": 0,
    }


def _alerts() -> dict[str, Any]:
    return {
        "name": "Alerts",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertname=~"Sluice.*", alertstate="firing", namespace=~"$namespace"}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{severity}}",
    }


def _links() -> dict[str, Any]:
    return {
        "title": "Sluice",
        "type": "dashboards",
        "tags": ["sluice"],
        "icon": "external link",
        "tooltip": "",
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }
