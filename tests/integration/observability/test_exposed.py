"""What rules and dashboards name, against what a running gateway shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.components import SPLIT, VALKEY
from tests.declared_metrics import declared_series
from tests.observed import Expression, panel_expressions, recorded, rule_expressions
from tests.promql import Selector, grouped_labels, selectors

pytestmark = pytest.mark.component(SPLIT, VALKEY)

# By label, the values that were seen.
Labels = Mapping[str, set[str]]

# Put there by who scrapes. A namespace is there on Kubernetes only.
SCRAPED = frozenset({"job", "instance", "namespace"})
# Prometheus' own series, with their labels.
OWN: Mapping[str, Labels] = {
    "up": {},
    "ALERTS": {"alertname": set(), "alertstate": set(), "severity": set()},
}
# Their values come from a configuration, or from what has happened: only the labels can be looked for.
OPEN = frozenset({"status", "code", "route", "storage", "recipient", "instance", "job", "namespace"})


@pytest.fixture(scope="module")
def shown(watched) -> Mapping[str, Labels]:
    """Every series of the running gateway, with the values of its labels."""
    found: dict[str, dict[str, set[str]]] = {}
    for sample in watched.samples():
        labels = found.setdefault(sample.name, {})
        for name, value in sample.labels.items():
            labels.setdefault(name, set()).add(value)
    return found


@pytest.fixture(scope="module")
def known(shown) -> Mapping[str, Labels]:
    """The same, with what Prometheus itself adds and records."""
    return {
        **shown,
        **OWN,
        **{name: {label: set() for label in labels} for name, labels in recorded().items()},
    }


@pytest.mark.parametrize("source", [rule_expressions, panel_expressions], ids=["rules", "panels"])
def test_every_series_that_is_named_is_shown(known, source):
    assert faults(source(), lambda selector: selector.metric not in known) == []


@pytest.mark.parametrize("source", [rule_expressions, panel_expressions], ids=["rules", "panels"])
def test_every_label_that_is_selected_by_is_one_of_its_series(known, source):
    def is_wrong(selector: Selector) -> bool:
        labels = known.get(selector.metric, {}).keys() | SCRAPED
        return any(matcher.label not in labels for matcher in selector.matchers)

    assert faults(source(), is_wrong) == []


@pytest.mark.parametrize("source", [rule_expressions, panel_expressions], ids=["rules", "panels"])
def test_every_value_of_a_closed_label_that_is_selected_by_is_one_it_has(known, source):
    def is_wrong(selector: Selector) -> bool:
        closed = [matcher for matcher in selector.matchers if matcher.label not in OPEN]
        values = {
            matcher.label: known.get(selector.metric, {}).get(matcher.label, set()) for matcher in closed
        }
        return any(
            values[matcher.label] and not any(map(matcher.admits, values[matcher.label]))
            for matcher in closed
        )

    assert faults(source(), is_wrong) == []


@pytest.mark.parametrize("source", [rule_expressions, panel_expressions], ids=["rules", "panels"])
def test_every_label_that_is_grouped_by_is_one_of_the_series(known, source):
    wrong = []
    for expression in source():
        labels = {label for found in selectors(expression.text) for label in known.get(found.metric, ())}
        missing = grouped_labels(expression.text) - labels - SCRAPED
        wrong += [(expression.where, label) for label in sorted(missing)]
    assert wrong == []


def test_what_is_declared_is_what_is_shown(shown):
    ours = {name for name in shown if name.startswith("sluice_") and not name.endswith("_created")}
    assert ours == declared_series()


def test_no_label_holds_a_secret_or_a_hash_of_one(shown):
    values = {value for labels in shown.values() for found in labels.values() for value in found}
    assert [value for value in values if "slc_" in value or "sha256" in value or len(value) > 120] == []


def faults(expressions: Sequence[Expression], is_wrong) -> list[tuple[str, str]]:
    return [
        (expression.where, str(selector))
        for expression in expressions
        for selector in selectors(expression.text)
        if is_wrong(selector)
    ]
