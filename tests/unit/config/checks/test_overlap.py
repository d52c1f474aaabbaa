from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.config.checks.overlap import Placed, warn_of_overlaps
from gateway.config.report import Report
from gateway.domain.location import parse_location
from tests.cases import each_case


def placed(share: int, *locations: str, is_dir: bool = True, number: int = 0) -> Placed:
    main, *others = (parse_location(text) for text in locations)
    return Placed(
        path=("shares", share, "schemas", 0, "tables", number),
        share=share,
        name=f"s{share}.c.t{number}",
        location=main,
        auxiliary_locations=tuple(others),
        is_dir=is_dir,
    )


def warnings(*tables: Placed) -> list[str]:
    report = Report()
    warn_of_overlaps(tables, report)
    return sorted(report.warnings())


def opens(outer: int, inner: int) -> str:
    return (
        f"shares[{outer}].schemas[0].tables[0].accessModes: a dir credential for s{outer}.c.t0 opens "
        f"s{inner}.c.t0 of another share too, which lies below it: move one of them, or share the outer one "
        "by url only"
    )


def opens_part(inner: int, outer: int, more: str = "") -> str:
    return (
        f"shares[{inner}].schemas[0].tables[0].accessModes: a dir credential for s{inner}.c.t0 opens a part "
        f"of s{outer}.c.t0 of another share, which it lies below{more}: move one of them, or share the inner "
        "one by url only"
    )


URL = {"is_dir": False}


@each_case(
    ("tables", "warned"),
    [
        ([placed(0, "s3://b/a"), placed(1, "s3://b/a/x", **URL)], [opens(0, 1)]),
        ([placed(0, "s3://b"), placed(1, "s3a://b/a/x/y/", **URL)], [opens(0, 1)]),
        ([placed(0, "s3://b/a/x"), placed(1, "s3://b/a", **URL)], [opens_part(0, 1)]),
        ([placed(0, "s3://b/a"), placed(1, "s3://b/a/x")], [opens(0, 1), opens_part(1, 0)]),
        ([placed(0, "s3://b/a", "s3://c"), placed(1, "s3://c/x", **URL)], [opens(0, 1)]),
        ([placed(0, "s3://b/a"), placed(1, "s3://c/x", "s3://b/a/x", **URL)], [opens(0, 1)]),
        ([placed(0, "s3://b/a", "s3://c/x"), placed(1, "s3://b/c", "s3://c/x", **URL)], [opens(0, 1)]),
        ([placed(0, "s3://b/a"), placed(1, "s3://b/a")], []),
        ([placed(0, "s3://b/a"), placed(1, "s3a://b/a/", **URL)], []),
        ([placed(0, "s3://b/a"), placed(1, "s3://b/ab")], []),
        ([placed(0, "s3://b/a"), placed(1, "gs://b/a/x")], []),
        ([placed(0, "s3://b/a", **URL), placed(1, "s3://b/a/x", **URL)], []),
        ([placed(0, "s3://b/a"), placed(0, "s3://b/a/x", number=1)], []),
    ],
    ids=[
        "below",
        "far below, in another spelling",
        "above",
        "both dir",
        "below an auxiliary location",
        "an auxiliary location below",
        "an auxiliary location in common",
        "the same table",
        "the same table, not dir there",
        "a name that begins alike",
        "another store",
        "no dir access",
        "the same share",
    ],
)
def test_directories_that_lie_in_one_another_are_warned_of(tables, warned):
    assert warnings(*tables) == sorted(warned)


def test_many_tables_below_one_are_told_of_once():
    inner = [placed(1, f"s3://b/a/{number}", number=number) for number in range(5)]
    found = warnings(placed(0, "s3://b/a"), *inner)
    assert found == sorted([opens(0, 1), opens_part(1, 0, " (and so does one for 4 more tables)")])


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a", "a/b", "a/b/c", "ab", "c"]), st.booleans()),
        max_size=6,
    )
)
def test_there_is_a_warning_exactly_where_a_pair_overlaps(entries):
    tables = [
        placed(share, f"s3://b/{path}", is_dir=is_dir, number=number)
        for number, (share, path, is_dir) in enumerate(entries)
    ]
    overlapping = any(
        one.is_dir
        and one.share != other.share
        and one.location != other.location
        and (one.location.covers(other.location) or other.location.covers(one.location))
        for one in tables
        for other in tables
    )
    assert bool(warnings(*tables)) == overlapping
