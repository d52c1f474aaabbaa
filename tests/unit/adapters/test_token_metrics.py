from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry

from gateway.adapters.token_metrics import Expiries, TokenMetrics

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def ends(expiries: Expiries) -> dict[tuple[str, str], float]:
    registry = CollectorRegistry()
    TokenMetrics(registry, lambda: expiries, lambda: NOON)
    return {
        (sample.labels["recipient"], sample.labels["token"]): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_of_two_tokens_the_next_end_and_the_last_are_told():
    assert ends({"acme": [NOON + DAY, NOON + 90 * DAY]}) == {
        ("acme", "next"): (NOON + DAY).timestamp(),
        ("acme", "last"): (NOON + 90 * DAY).timestamp(),
    }


def test_a_token_that_has_ended_is_not_the_next_to_end():
    assert ends({"acme": [NOON - DAY, NOON + DAY]})["acme", "next"] == (NOON + DAY).timestamp()


def test_a_recipient_whose_tokens_have_all_ended_is_told_of_for_another_day():
    assert ends({"acme": [NOON - DAY]}) == {("acme", "last"): (NOON - DAY).timestamp()}
    assert ends({"acme": [NOON - DAY - timedelta(seconds=1)]}) == {}


def test_a_recipient_with_a_token_that_never_ends_has_no_last_one():
    assert ends({"acme": [None, NOON + DAY]}) == {("acme", "next"): (NOON + DAY).timestamp()}
    assert ends({"acme": [None]}) == {}


def test_of_very_many_those_that_end_soonest_are_told():
    found = ends({f"r{number}": [NOON + number * DAY] for number in range(1, 2001)})
    assert len(found) == 1000
    assert ("r1", "last") in found
    assert ("r2000", "last") not in found


def test_those_that_ended_long_ago_do_not_crowd_out_those_that_end_soon():
    long_ago = {f"r{number}": [NOON - number * DAY] for number in range(2, 2001)}
    assert ends(long_ago | {"acme": [NOON + DAY]}).keys() == {("acme", "next"), ("acme", "last")}
