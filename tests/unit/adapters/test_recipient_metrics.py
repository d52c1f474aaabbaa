from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.recipient_metrics import Outcome, RecipientMetrics, outcome_of
from tests.cases import each_case


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry) -> RecipientMetrics:
    return RecipientMetrics(registry)


@each_case(
    ("status", "outcome"),
    [
        (200, Outcome.OK),
        (304, Outcome.OK),
        (400, Outcome.INVALID),
        (403, Outcome.DENIED),
        (404, Outcome.DENIED),
        (413, Outcome.INVALID),
        (429, Outcome.THROTTLED),
        (499, Outcome.GONE),
        (503, Outcome.FAILED),
    ],
)
def test_a_status_has_its_outcome(status, outcome):
    assert outcome_of(status) is outcome


def test_every_outcome_of_a_recipient_is_shown_from_its_first_request_on(metrics, registry):
    metrics.count_request("acme", 200)

    counts = {
        sample.labels["outcome"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "sluice_recipient_requests_total"
    }
    assert counts == {outcome: float(outcome is Outcome.OK) for outcome in Outcome}


def test_recipients_beyond_a_thousand_share_one_series(metrics, registry):
    for number in range(1005):
        metrics.count_credential(f"recipient-{number}")

    found = [
        sample
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "sluice_recipient_credentials_total"
    ]
    assert len(found) == 1001
    assert registry.get_sample_value("sluice_recipient_credentials_total", {"recipient": "other"}) == 5
