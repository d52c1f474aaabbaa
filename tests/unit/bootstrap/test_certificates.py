from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.adapters.certificate import find_validity
from gateway.adapters.metrics import PrometheusMetrics
from gateway.bootstrap.certificates import ServicesCertificates, show_redis_certificate
from gateway.config.schema import Config, ServiceName
from gateway.rpc.certificates import Certificates, Material
from tests.certificates import new_authority


@pytest.fixture
def tls(tmp_path):
    return new_authority(tmp_path).issue("edge")


@pytest.fixture
def metrics() -> PrometheusMetrics:
    return PrometheusMetrics(version="1")


def shown(metrics: PrometheusMetrics) -> dict[str, float]:
    return {
        sample.labels["use"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "sluice_certificate_expiry_timestamp_seconds"
    }


def end_of(file: str) -> float:
    validity = find_validity(Path(file))
    assert validity is not None
    return validity.ends_at.timestamp()


@dataclass
class Channel:
    """Goes over to renewed certificates when it is let."""

    certificates: Certificates
    is_let: bool = False

    def __post_init__(self) -> None:
        self.material: Material = self.certificates.material

    async def renew(self) -> bool:
        if self.is_let:
            self.material = self.certificates.material
        return self.is_let


def test_a_process_tells_of_what_it_shows_to_services(tls, metrics):
    ServicesCertificates(Certificates(tls), metrics)
    assert shown(metrics) == {"services": end_of(tls.certificate)}
    validity = find_validity(Path(tls.certificate))
    life = metrics.registry.get_sample_value("sluice_certificate_life_seconds", {"use": "services"})
    assert validity is not None
    assert life == validity.life.total_seconds()


async def test_the_old_certificate_is_told_of_until_the_last_channel_uses_the_new_one(tmp_path, metrics):
    authority = new_authority(tmp_path)
    tls = authority.issue("edge", life=timedelta(minutes=1))
    certificates, old = Certificates(tls), end_of(tls.certificate)
    channels = [Channel(certificates, is_let=True), Channel(certificates)]
    in_use = ServicesCertificates(certificates, metrics)
    for channel in channels:
        in_use.add(channel)

    authority.issue("edge")
    assert not await in_use.take_up()
    assert shown(metrics) == {"services": old}

    channels[1].is_let = True
    assert await in_use.take_up()
    assert shown(metrics) == {"services": end_of(tls.certificate)}
    assert end_of(tls.certificate) > old


def test_only_who_has_a_connection_to_redis_tells_of_what_it_shows_there(tls, metrics):
    redis = {"url": "rediss://127.0.0.1", "tls": tls.model_dump()}
    config = Config.model_validate({"cache": {"redis": redis}})

    show_redis_certificate(config, [ServiceName.CATALOG], metrics)
    assert shown(metrics) == {}
    show_redis_certificate(config, [ServiceName.VENDING], metrics)
    assert shown(metrics) == {"redis": end_of(tls.certificate)}


def test_a_process_without_certificates_tells_of_none(tls, metrics):
    redis = {"url": "rediss://127.0.0.1", "tls": {"ca": tls.ca}}
    show_redis_certificate(Config.model_validate({"cache": {"redis": redis}}), [ServiceName.VENDING], metrics)
    assert shown(metrics) == {}
