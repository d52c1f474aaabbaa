from __future__ import annotations

import pytest

from gateway.config.nearest import NEAR_MISS, nearest
from tests.cases import each_case

KNOWN = ("port", "host", "historyShared", "bearerToken", "preSignedUrlTimeoutSeconds")


@each_case(
    ("name", "meant"),
    [
        ("prot", "port"),
        ("hots", "host"),
        ("historyshared", "historyShared"),
        ("history_shared", "historyShared"),
        ("bearer-token", "bearerToken"),
        ("preSignedUrlTimeoutSecond", "preSignedUrlTimeoutSeconds"),
    ],
)
def test_a_slip_of_the_pen_is_near(name, meant):
    assert nearest(name, KNOWN, NEAR_MISS) == meant


@pytest.mark.parametrize("name", ["", "evaluatePredicateHints", "x" * 5000])
def test_another_word_is_not(name):
    assert nearest(name, KNOWN, NEAR_MISS) == ""
