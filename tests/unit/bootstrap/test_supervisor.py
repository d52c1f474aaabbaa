from __future__ import annotations

from gateway.bootstrap.supervisor import pause_after, worst_states
from tests.cases import each_case

STARTING = "not reached yet: does not answer: UNAVAILABLE"


@each_case(("deaths", "seconds"), [(1, 0.1), (2, 0.2), (5, 1.6), (7, 6.4), (8, 10), (20, 10), (100_000, 10)])
def test_pauses_grow_up_to_a_limit(deaths, seconds):
    assert pause_after(deaths).total_seconds() == seconds


@each_case(
    ("reported", "worst"),
    [
        (("ok", "ok"), "ok"),
        (("ok", "does not serve"), "does not serve"),
        (("does not serve", "ok"), "does not serve"),
        (("ok", STARTING), STARTING),
        (("does not serve", STARTING), "does not serve"),
        ((STARTING, "does not serve"), "does not serve"),
        ((STARTING, "ok"), STARTING),
    ],
)
def test_worst_state_of_two_workers(reported, worst):
    assert worst_states({"vending": state} for state in reported) == {"vending": worst}


@each_case(
    ("reported", "worst"),
    [
        (("ok", STARTING), "ok"),
        ((STARTING, "ok"), "ok"),
        ((STARTING, STARTING), STARTING),
        ((STARTING, "does not serve"), "does not serve"),
        (("ok", "does not serve"), "does not serve"),
    ],
)
def test_worst_state_after_start_ignores_a_worker_that_restarts(reported, worst):
    states = worst_states(({"vending": state} for state in reported), has_started=True)

    assert states == {"vending": worst}
