from __future__ import annotations

import json
import re

import pytest
import yaml

from gateway.config.outline import outline
from gateway.config.schema import Config
from helm.schema import SCHEMA, schema, undescribed
from helm.table import README, readme
from helm.values import CHART, read_values, walk
from tests.repository import ROOT

COPIES = [
    ("rules", "deploy/prometheus/rules", "*.yaml"),
    ("dashboards", "deploy/grafana/dashboards", "*.json"),
]


def test_the_table_in_the_readme_is_fresh():
    assert README.read_text() == readme(), "run `python -m helm`"


def test_the_schema_is_fresh():
    assert SCHEMA.read_text() == schema(), "run `python -m helm`"


def test_every_value_has_its_comment():
    paths = [path for path, _ in walk(read_values())]
    assert "processDefaults.autoscaling.podMetric.name" in paths
    assert len(paths) > 150


def test_no_special_case_of_the_schema_is_about_nothing():
    assert list(undescribed()) == []


def test_every_setting_of_the_gateway_has_its_place_in_the_schema_or_is_the_charts_own():
    own = {"host", "port", "keys", "metrics", "stateDir", "grace", "drain"}
    known = json.loads(SCHEMA.read_text())["$defs"]["config"]["properties"]
    assert set(known) == {entry.key for entry in outline(Config).values()} - own


def test_every_example_is_in_the_readme():
    examples = {path.name for path in (CHART / "examples").glob("*.yaml")}
    assert set(re.findall(r"\[examples/([a-z]+\.yaml)\]", README.read_text())) == examples


def test_the_chart_is_of_the_gateways_version():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version.group(1)


@pytest.mark.parametrize(("folder", "origin", "pattern"), COPIES)
def test_rules_and_dashboards_of_the_chart_are_those_of_the_project(folder, origin, pattern):
    originals = {path.name: path.read_text() for path in (ROOT / origin).glob(pattern)}
    copies = {path.name: path.read_text() for path in (CHART / "files" / folder).glob(pattern)}
    assert copies == originals, f"run `python -m helm`, which copies {origin}"


def test_every_list_of_the_schema_says_what_is_in_it():
    def untyped(schema: object, path: str) -> list[str]:
        if not isinstance(schema, dict):
            return []
        own = [path] if schema.get("type") == "array" and "items" not in schema else []
        return own + [each for key, inner in schema.items() for each in untyped(inner, f"{path}.{key}")]

    known = json.loads(SCHEMA.read_text())
    assert untyped(known["properties"], "") == []
