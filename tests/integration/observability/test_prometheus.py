"""A real Prometheus over a real gateway: it takes our configuration, rules and queries, and computes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.components import PROMETHEUS as COMPONENT
from tests.components import PROMTOOL, SPLIT
from tests.integration.observability.promtool import promtool, write_yaml
from tests.observed import PROMETHEUS, alert_place, alerts, panel_expressions
from tests.problems import assert_none
from tests.prometheus import Prometheus, PrometheusError, running_prometheus
from tests.waiting import eventually
from tests.watched import DIR_TABLES

pytestmark = [pytest.mark.component(COMPONENT, PROMTOOL, SPLIT), pytest.mark.system]

# True once Prometheus has seen requests that succeed, and has recorded the rates that alerts compare.
SUCCESSES = (
    'rate(sluice_recipient_requests_total{recipient="acme", outcome="ok"}[5m]) > 0',
    'rate(sluice_snapshot_checks_total{outcome="listed"}[5m]) > 0',
    'sluice:provider_calls:rate5m{call="credential", outcome="minted"} > 0',
    "sluice:http_bounded:rate3d > 0",
)


@pytest.fixture(scope="module")
def prometheus(watched, tmp_path_factory) -> Iterator[Prometheus]:
    """A Prometheus that has seen the counters of a gateway grow by requests that all succeed."""
    with running_prometheus(tmp_path_factory.mktemp("prometheus") / "p", watched.targets) as server:
        eventually(lambda: len(server.query("up == 1")) == sum(map(len, watched.targets.values())))
        watched.succeed(DIR_TABLES[3:6])
        # More than the rate from which on an alert looks at a recipient.
        for _ in range(70):
            assert watched.ask("acme", "/shares").status == 200
        for expr in SUCCESSES:
            eventually(partial(server.query, expr))
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
    def health() -> list[tuple[str, str]]:
        return sorted((target["scrapePool"], target["health"]) for target in prometheus.targets())

    jobs = [(job, "up") for job, addresses in sorted(watched.targets.items()) for _ in addresses]
    eventually(lambda: health() == jobs, lambda: str(health()))


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
BY_THE_MACHINE = {
    "SluiceEventLoopLags",
    "SluiceLatencyBudgetBurnsFast",
    "SluiceLatencyBudgetBurnsSlowly",
}


def test_what_an_alert_asks_for_is_not_so_of_a_gateway_that_is_well(prometheus):
    def faults() -> list[str]:
        return [
            f"{alert_place(name)} has {series}"
            for name in sorted(alerts().keys() - BY_THE_MACHINE)
            for series in prometheus.query(alerts()[name]["expr"])
        ]

    # The expression alone: most alerts wait for longer than a test could. What is late once has an end; what
    # rates have counted stays for minutes.
    eventually(lambda: not faults(), lambda: "no alert\n" + "\n".join(faults()), pause=1)
