"""A real Prometheus over a real gateway: it takes our configuration, rules and queries, and computes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.components import PROMETHEUS as COMPONENT
from tests.components import PROMTOOL, SPLIT
from tests.integration.observability.promtool import promtool, write_yaml
from tests.observed import PROMETHEUS, alert_place, alerts, panel_expressions
from tests.problems import assert_none
from tests.prometheus import Prometheus, PrometheusError, running_prometheus
from tests.waiting import eventually

pytestmark = [pytest.mark.component(COMPONENT, PROMTOOL, SPLIT), pytest.mark.system]


@pytest.fixture(scope="module")
def prometheus(watched, tmp_path_factory) -> Iterator[Prometheus]:
    with running_prometheus(tmp_path_factory.mktemp("prometheus") / "p", watched.targets) as server:
        # Two scrapes make a rate.
        eventually(
            lambda: len(server.query("rate(sluice_config_generation_info[10s])")) >= len(watched.targets)
        )
        yield server


def test_the_configuration_for_compose_is_well_formed():
    assert "FAILED" not in promtool("check", "config", PROMETHEUS / "prometheus.yaml")


def test_every_query_of_a_panel_is_promql(tmp_path):
    rules = [{"record": "panel", "expr": expression.text} for expression in panel_expressions()]
    promtool(
        "check",
        "rules",
        "--lint=none",
        write_yaml(tmp_path / "panels.json", {"groups": [{"name": "panels", "rules": rules}]}),
    )


def test_every_process_is_scraped(prometheus, watched):
    states = {target["scrapePool"]: target["health"] for target in prometheus.targets()}
    assert states == dict.fromkeys(watched.targets, "up")


def test_every_query_of_a_panel_can_be_computed(prometheus):
    problems = []
    for expression in panel_expressions():
        try:
            prometheus.query(expression.text)
        except PrometheusError as exc:
            problems.append(f"{expression.where}: {exc}")
    assert_none(problems)


def test_every_rule_can_be_computed(prometheus):
    eventually(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))


# A machine that runs all tests at once lets processes wait: that says nothing of the gateway.
BY_THE_MACHINE = {"SluiceEventLoopLags"}


def test_what_an_alert_asks_for_is_not_so_of_a_gateway_that_is_well(prometheus):
    # The expression alone: most alerts wait for longer than a test could.
    assert_none(
        f"{alert_place(name)} has {series}"
        for name in sorted(alerts().keys() - BY_THE_MACHINE)
        for series in prometheus.query(alerts()[name]["expr"])
    )
