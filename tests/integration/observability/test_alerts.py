"""Every alert fires when it should, and only then: promtool runs the rules over made-up series."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.components import PROMTOOL
from tests.integration.observability.alert_cases import CASES, Case, Series
from tests.integration.observability.promtool import promtool, write_yaml
from tests.observed import RULES, alert_place, alerts
from tests.problems import assert_none

pytestmark = [pytest.mark.component(PROMTOOL), pytest.mark.system]

_LABEL = re.compile(r"\$labels\.(\w+)")


def test_the_rules_are_well_formed():
    promtool("check", "rules", *RULES)


def test_every_alert_has_a_case_that_fires_and_one_that_does_not():
    assert set(CASES) == set(alerts())
    assert [name for name, case in CASES.items() if not case.quiet] == []


def test_alerts_fire_with_their_labels_when_they_should(tmp_path):
    files = [
        _write(tmp_path, rules, [_fires(name, case) for name, case in _cases(rules).items()])
        for rules in RULES
    ]
    promtool("test", "rules", *files)


def test_alerts_stay_quiet_when_they_should(tmp_path):
    files = [
        _write(
            tmp_path,
            rules,
            [_quiet(name, case, series) for name, case in _cases(rules).items() for series in case.quiet],
        )
        for rules in RULES
    ]
    promtool("test", "rules", *files)


def test_nothing_fires_of_a_gateway_of_which_nothing_is_known_but_that_it_runs(tmp_path):
    looks = [{"expr": "ALERTS", "eval_time": f"{minutes}m", "exp_samples": []} for minutes in range(5, 95, 5)]
    tests = [_group({'up{job="sluice-edge", instance="a"}': "1x100"}) | {"promql_expr_test": looks}]
    promtool("test", "rules", write_yaml(tmp_path / "silent.json", _file(tests, *RULES)))


def test_what_an_alert_says_names_only_labels_that_it_has():
    assert_none(
        f"{alert_place(name)}: its {annotation} names the label {label}; the alert has {sorted(case.labels)}"
        for name, case in CASES.items()
        for annotation, text in alerts()[name]["annotations"].items()
        for label in _LABEL.findall(text)
        if label not in case.labels
    )


def _cases(file: Path) -> Mapping[str, Case]:
    names = [
        rule.get("alert") for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]
    ]
    return {name: CASES[name] for name in names if name}


def _write(folder: Path, rules: Path, tests: list[dict[str, Any]]) -> Path:
    """Write the cases of one file of rules, in a file by which promtool names them."""
    return write_yaml(folder / f"{rules.stem}.json", _file(tests, rules))


def _file(tests: list[dict[str, Any]], *rules: Path) -> Mapping[str, Any]:
    # Windows of days take long to look through.
    interval = "5m" if [file.stem for file in rules] == ["slo"] else "1m"
    return {"rule_files": [str(file) for file in rules], "evaluation_interval": interval, "tests": tests}


def _group(series: Series) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given}


def _fires(name: str, case: Case) -> dict[str, Any]:
    severity = alerts()[name]["labels"]["severity"]
    labels = {**case.labels, "alertname": name, "alertstate": "firing", "severity": severity}
    expected = [{"labels": f"ALERTS{{{', '.join(_pairs(labels))}}}", "value": 1}]
    look = {"expr": _firing(name), "eval_time": f"{case.after}m", "exp_samples": expected}
    return _group(case.fires) | {"promql_expr_test": [look]}


def _quiet(name: str, case: Case, series: Series) -> dict[str, Any]:
    """Look often, and for longer than it takes to fire."""
    minutes = range(3, case.after + 45, 3)
    looks = [{"expr": _firing(name), "eval_time": f"{minute}m", "exp_samples": []} for minute in minutes]
    return _group(series) | {"promql_expr_test": looks}


def _firing(name: str) -> str:
    return f'ALERTS{{alertname="{name}", alertstate="firing"}}'


def _pairs(labels: Mapping[str, str]) -> Iterator[str]:
    return (f'{label}="{value}"' for label, value in labels.items())
