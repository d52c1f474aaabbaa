"""The dashboards' JSON: what Grafana would refuse, draw over one another or leave without a word."""

from __future__ import annotations

import json
import re
from itertools import combinations

import pytest

from deploy.grafana.build import DASHBOARDS, files
from tests.declared_metrics import declared_metrics
from tests.observed import dashboards, panels
from tests.problems import assert_none, place
from tests.promql import Matcher, selectors

BOARDS = dashboards()
VARIABLE = re.compile(r"\$(\w+)")
LABEL = re.compile(r"\{\{(\w+)\}\}")
# What tells of a version or a moment, and what the series beside it tell better.
WITHOUT_A_PANEL = {
    "sluice_build_info",
    "sluice_config_last_reload_success_timestamp_seconds",
    "sluice_config_reloads_total",
    "sluice_certificate_renewals_total",
    "sluice_audit_shipped_segments_total",
    "sluice_snapshot_kept",
    "sluice_snapshot_loaded_files_total",
    "sluice_throttled_requests_total",
}
# Grafana's own.
BUILT_IN = {"__rate_interval"}


@pytest.fixture(params=BOARDS)
def board(request):
    return BOARDS[request.param]


def line_of(board, panel):
    """Return where the title of a panel is in the file of its dashboard, and the title."""
    (name,) = [name for name, each in BOARDS.items() if each is board]
    title = json.dumps(panel["title"])
    return f"{place(DASHBOARDS / f'{name}.json', re.escape(title))}: {title}"


def test_the_files_are_what_the_code_beside_them_makes():
    written = {file.name: file.read_text() for file in DASHBOARDS.glob("*.json")}
    assert written == files(), "run `python -m deploy.grafana.build`"


def test_what_the_fleet_needs_has_a_dashboard():
    assert set(BOARDS) == {"overview", "url-access", "dir-access", "cache", "recipients", "pipeline"}


def test_ids_and_titles_are_unique(board):
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    titles = [panel["title"] for panel in board["panels"]]
    assert len(set(titles)) == len(titles)


def test_dashboards_are_told_apart_by_uid_and_title():
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)
    assert all(board["schemaVersion"] >= 36 for board in BOARDS.values())


def test_panels_lie_within_the_grid_and_beside_one_another(board):
    spots = {panel["title"]: panel["gridPos"] for panel in board["panels"]}
    assert [
        (title, spot) for title, spot in spots.items() if spot["x"] < 0 or spot["x"] + spot["w"] > 24
    ] == []
    overlapping = [(one, other) for (one, a), (other, b) in combinations(spots.items(), 2) if _overlap(a, b)]
    assert overlapping == []


def test_every_panel_says_what_it_shows_and_what_good_looks_like(board):
    silent = [panel["title"] for panel in panels(board) if "Good: " not in panel["description"]]
    assert silent == []


def test_every_panel_has_a_unit_a_source_and_queries_with_legends(board):
    problems = []
    for panel in panels(board):
        targets = panel["targets"]
        references = [target["refId"] for target in targets]
        checks = {
            "no unit": not panel["fieldConfig"]["defaults"]["unit"],
            f"the data source {panel['datasource']['uid']}": panel["datasource"]["uid"] != "${datasource}",
            "no query": not targets,
            f"a refId used twice: {references}": len(set(references)) != len(references),
            "a query without an expression": not all(target["expr"].strip() for target in targets),
            "a query without a legend": not all(target["legendFormat"].strip() for target in targets),
        }
        problems += [f"{line_of(board, panel)} has {text}" for text, is_wrong in checks.items() if is_wrong]
    assert_none(problems)


def test_variables_that_are_used_exist_and_those_that_exist_are_used(board):
    existing = {variable["name"] for variable in board["templating"]["list"]}
    used = {
        name
        for panel in panels(board)
        for target in panel["targets"]
        for name in VARIABLE.findall(target["expr"])
    }
    assert used - BUILT_IN == existing - {"datasource"}


def test_a_legend_names_labels_that_its_query_keeps(board):
    assert_none(
        f"{line_of(board, panel)}: the legend of {target['refId']} names {label}, its query has none"
        for panel in panels(board)
        for target in panel["targets"]
        for label in LABEL.findall(target["legendFormat"])
        if label not in target["expr"]
    )


def test_a_choice_of_everything_takes_what_has_no_such_label_and_of_processes_only_ours(board):
    # A namespace is there on Kubernetes only. Of jobs and replicas all means those that Grafana has found by
    # a metric of ours: with .* panels of up and process_* would show the whole cluster.
    choices = [variable for variable in board["templating"]["list"] if variable["type"] == "query"]
    widest = {choice["name"]: choice.get("allValue") for choice in choices}
    assert {widest.pop(name) for name in ("job", "instance")} == {None}
    assert set(widest.values()) == {".*"}
    found_by = {choice["name"]: choice["query"]["query"] for choice in choices}
    assert found_by["job"] == "label_values(sluice_build_info, job)"
    assert found_by["instance"] == "label_values(sluice_build_info, instance)"


def test_what_rules_record_and_fire_goes_by_the_chosen_namespace(board):
    texts = [target["expr"] for panel in panels(board) for target in panel["targets"]]
    texts += [annotation["expr"] for annotation in board["annotations"]["list"]]
    found = [selector for text in texts for selector in selectors(text.replace("$__rate_interval", "1m"))]
    of_rules = [selector for selector in found if selector.metric == "ALERTS" or ":" in selector.metric]
    assert of_rules
    assert [one for one in of_rules if Matcher("namespace", "=~", "$namespace") not in one.matchers] == []


def test_every_metric_of_ours_has_a_panel_or_a_reason_to_have_none():
    shown = {
        name
        for board in BOARDS.values()
        for panel in panels(board)
        for target in panel["targets"]
        for name in re.findall(r"\bsluice_\w+", target["expr"])
    }
    missing = {name for name, kind in declared_metrics().items() if not _series_of(name, kind) & shown}
    assert missing == WITHOUT_A_PANEL


def _series_of(name: str, kind: str) -> set[str]:
    suffixes = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
    return {f"{name}{suffix}" for suffix in suffixes}


def _overlap(a: dict[str, int], b: dict[str, int]) -> bool:
    across = a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"]
    down = a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    return across and down
