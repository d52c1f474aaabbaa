from __future__ import annotations

import json
from datetime import timedelta

from gateway.domain.allowance import METHODS
from gateway.rpc.service_config import service_config, service_config_json

STREAMS = {("Snapshot", "Query"), ("Snapshot", "Changes")}


def test_every_method_but_the_streams_has_a_timeout():
    timed, rest = service_config()["methodConfig"]
    named = set()
    for name in timed["name"]:
        service = name["service"].removeprefix("gateway.v1.")
        methods = [name["method"]] if "method" in name else METHODS[service]
        named |= {(service, method) for method in methods}

    assert timed["timeout"] == "30.000s"
    assert named == {(service, method) for service in METHODS for method in METHODS[service]} - STREAMS
    assert rest["name"] == [{}]
    assert "timeout" not in rest


def test_only_what_nobody_has_answered_is_tried_again():
    for method in service_config()["methodConfig"]:
        assert method["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE", "CANCELLED"]
        assert "hedgingPolicy" not in method


def test_calls_go_to_replicas_that_say_they_serve_where_the_service_is_named():
    named = service_config(service="gateway.v1.Vending")

    assert named["healthCheckConfig"] == {"serviceName": "gateway.v1.Vending"}
    assert "healthCheckConfig" not in service_config()


def test_a_timeout_is_written_as_grpc_reads_it():
    config = json.loads(service_config_json(timedelta(days=30)))

    assert config["methodConfig"][0]["timeout"] == "2592000.000s"
