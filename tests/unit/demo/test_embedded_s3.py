from __future__ import annotations

from gateway.demo.embedded_s3 import arguments


def test_store_listens_on_loopback_only_and_calls_nobody():
    given = arguments([11_001, 11_002, 11_003, 11_004])
    assert "-ip.bind=127.0.0.1" in given
    assert "-master.telemetry=false" in given
    # Left out, these are opened on fixed ports.
    assert {"-s3.port.iceberg=0", "-s3.port.lance=0"} <= set(given)


def test_store_is_called_by_names_below_its_own_directory():
    assert not [argument for argument in arguments([1, 2, 3, 4]) if "=/" in argument]
