from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.certificate import first_expiry
from gateway.adapters.metrics import PrometheusMetrics
from gateway.bootstrap.certificates import show_certificates
from gateway.config.schema import Config, ServiceName
from tests.certificates import new_authority


@pytest.fixture
def tls(tmp_path):
    return new_authority(tmp_path).issue("edge")


def shown(content: dict[str, Any], *run: ServiceName) -> dict[str, float]:
    metrics = PrometheusMetrics(version="1")
    show_certificates(Config.model_validate(content), run, metrics)
    return {
        sample.labels["use"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "sluice_certificate_expiry_timestamp_seconds"
    }


def end_of(file: str) -> float:
    expires_at = first_expiry(Path(file))
    assert expires_at is not None
    return expires_at.timestamp()


def test_a_process_tells_of_what_it_shows_to_services_and_to_redis(tls):
    redis = {"url": "rediss://127.0.0.1", "tls": tls.model_dump()}
    content = {"services": {"tls": tls.model_dump()}, "cache": {"redis": redis}}

    end = end_of(tls.certificate)
    assert shown(content, ServiceName.VENDING) == {"services": end, "redis": end}
    assert shown(content, ServiceName.CATALOG) == {"services": end}


def test_a_process_without_certificates_tells_of_none(tls):
    redis = {"url": "rediss://127.0.0.1", "tls": {"ca": tls.ca}}
    assert shown({"cache": {"redis": redis}}, ServiceName.VENDING) == {}
