from __future__ import annotations

import pytest

from tests.cases import each_case
from tests.promql import Matcher, Selector, grouped_labels, selectors


@each_case(
    ("expr", "found"),
    [
        ("up", [Selector("up")]),
        ("a - time() < 2 * 86400", [Selector("a")]),
        (
            'rate(a{x="1", y=~"b|c"}[5m])',
            [Selector("a", (Matcher("x", "=", "1"), Matcher("y", "=~", "b|c")))],
        ),
        ("sum by (job, le) (rate(a[5m])) / on (job) group_left (x) b", [Selector("a"), Selector("b")]),
        ("sum(a:b:rate5m) and absent(c) or vector(0)", [Selector("a:b:rate5m"), Selector("c")]),
        ('a{x="}, y{"} unless b', [Selector("a", (Matcher("x", "=", "}, y{"),)), Selector("b")]),
        ("histogram_quantile(0.99, a_bucket) > 1e3", [Selector("a_bucket")]),
    ],
)
def test_selectors_are_found_and_nothing_else_is(expr, found):
    assert selectors(expr) == found


def test_labels_are_found_wherever_series_are_brought_together():
    expr = "sum by (job, le) (a) / ignoring (b) group_left (c) count without (d) (e)"
    assert grouped_labels(expr) == {"job", "le", "b", "c", "d"}


@each_case(
    ("operator", "text", "admitted"),
    [("=", "ab", False), ("!=", "ab", True), ("=~", "a.", False), ("=~", "a..", True), ("!~", "a..", False)],
)
def test_a_matcher_admits_what_prometheus_would(operator, text, admitted):
    assert Matcher("label", operator, text).admits("abc") is admitted


def test_what_is_not_understood_is_an_error():
    with pytest.raises(ValueError, match="not understood"):
        selectors("a @ 5")
