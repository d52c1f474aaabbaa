from __future__ import annotations

from gateway.config.checks.unique import Unique
from gateway.config.report import Report


def test_a_second_one_is_a_fault_that_names_the_first():
    report = Report()
    unique = Unique(report, "is the name of {first} already")
    unique.add("a", ("shares", 0), "A")
    unique.add("b", ("shares", 1), "b")
    unique.add("a", ("shares", 2), "a")
    (fault,) = report.faults({})
    assert str(fault) == "shares[2]: is the name of shares[0] already (found 'a')"
