from __future__ import annotations

import pytest

from gateway.bootstrap.edge import edge_settings
from gateway.bootstrap.reload import Rates
from gateway.config.schema import Config, public_url
from tests.cases import each_case


@each_case(
    ("settings", "expected"),
    [
        ({}, "http://127.0.0.1:8080/delta-sharing"),
        ({"endpoint": "/x", "port": 1}, "http://127.0.0.1:1/x"),
        ({"endpoint": ""}, "http://127.0.0.1:8080"),
        ({"endpoint": "/"}, "http://127.0.0.1:8080"),
        ({"host": "::1"}, "http://[::1]:8080/delta-sharing"),
        ({"ssl": {"selfSigned": True}}, "https://127.0.0.1:8080/delta-sharing"),
        ({"publicUrl": "https://share.example.com/ds/"}, "https://share.example.com/ds"),
    ],
)
def test_what_recipients_put_before_shares(settings, expected):
    assert public_url(Config.model_validate(settings)) == expected


def test_a_recipient_has_its_own_rate_or_everybodys_and_a_reload_changes_both():
    config = {
        "limits": {"rate": {"requestsPerSecond": 5, "burst": 6}},
        "recipients": [{"name": "a", "rate": {"requestsPerSecond": 1, "burst": 2}}, {"name": "b"}],
    }
    rates = Rates(Config.model_validate(config))

    assert (rates("a").requests_per_second, rates("a").burst) == (1, 2)
    assert (rates("b").requests_per_second, rates("b").burst) == (5, 6)
    rates.replace(Config.model_validate({"limits": {"rate": {"requestsPerSecond": 9, "burst": 9}}}))
    assert rates("a").requests_per_second == rates("b").requests_per_second == 9


@pytest.mark.parametrize("shown", [True, False])
def test_the_edge_is_told_what_to_say_of_a_stores_place(shown):
    config = Config.model_validate({"credentials": {"regionAndEndpoint": shown}})

    assert edge_settings(config, Rates(config)).region_and_endpoint is shown


@pytest.mark.parametrize(
    ("written", "compresses"), [({}, True), ({"compression": "auto"}, True), ({"compression": "off"}, False)]
)
def test_answers_are_compressed_unless_that_is_off(written, compresses):
    config = Config.model_validate({"http": written})
    assert edge_settings(config, Rates(config)).compresses is compresses
