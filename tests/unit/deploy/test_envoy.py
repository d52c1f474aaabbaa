from __future__ import annotations

import yaml

from gateway.bootstrap.readiness import CheckTimes
from gateway.config.value import parse_span
from tests.repository import ROOT


def test_health_check_of_an_edge_waits_longer_than_the_edge_waits_for_a_service():
    envoy = yaml.safe_load((ROOT / "deploy" / "envoy" / "envoy.yaml").read_text())
    edges = next(cluster for cluster in envoy["static_resources"]["clusters"] if cluster["name"] == "edges")
    (check,) = edges["health_checks"]
    assert parse_span(check["timeout"]) > CheckTimes().timeout
