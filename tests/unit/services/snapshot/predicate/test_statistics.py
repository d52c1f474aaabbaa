from __future__ import annotations

import json

import polars as pl
import pytest

from gateway.services.snapshot.predicate.statistics import find_parsed, read_statistics
from tests.cases import each_case

GOOD = (
    '{"numRecords":3,"minValues":{"c":1,"s":{"x":"a"}},"maxValues":{"c":9,"s":{"x":"b"}},"nullCount":{"c":0}}'
)


def read(*texts, path=("c",)):
    found = read_statistics(pl.Series(texts, dtype=pl.String), [path])[path]
    return list(zip(found.minima, found.maxima, found.null_count, found.records, strict=True))


def test_statistics_of_a_column_are_read():
    assert read(GOOD) == [("1", "9", 0, 3)]


def test_statistics_of_a_nested_column_are_read():
    assert read(GOOD, path=("s", "x")) == [("a", "b", None, 3)]


def test_several_columns_are_read_at_once():
    found = read_statistics(pl.Series([GOOD]), [("c",), ("s", "x"), ("none",)])

    assert [found[path].minima.item() for path in (("c",), ("s", "x"), ("none",))] == ["1", "a", None]


def test_no_rows_have_no_statistics():
    assert read() == []


@each_case(
    "damaged",
    [
        "",
        "  ",
        "{",
        "x",
        "null",
        "5",
        "[]",
        "{},{}",
        "null,null",
        '{"a":1} , {"b":2}',
        f"{GOOD},{GOOD}",
        GOOD + "x",
        '{"numRecords":{},"minValues":[],"nullCount":5}',
        '{"minValues":{"c":{"d":1}},"maxValues":{"c":[1]},"nullCount":{"c":"x"}}',
        None,
    ],
)
def test_a_damaged_row_is_unknown_and_spoils_no_other(damaged):
    before, row, after = read(GOOD, damaged, GOOD)

    assert before == after == ("1", "9", 0, 3)
    assert row == (None, None, None, None)


@pytest.mark.parametrize(
    "rows",
    [
        # Joined by commas: one value, and three values of which no row is one.
        ['{"minValues":{"c":"', '"}}'],
        ['{"minValues":{"c":"', '"}}', f"{GOOD},{GOOD}"],
        ['{"minValues":{"c":"', '"}},{"minValues":{"c":1}}'],
    ],
)
def test_rows_that_would_pass_for_others_when_joined_are_found_out(rows):
    assert [row[0] for row in read(*rows)] == [None] * len(rows)


def test_a_text_that_looks_like_a_seam_is_read():
    stats = json.dumps({"numRecords": 1, "minValues": {"c": '[{"a":1},{"'}, "maxValues": {"c": "x"}})

    assert read(GOOD, stats) == [("1", "9", 0, 3), ('[{"a":1},{"', "x", None, 1)]


@each_case(
    ("name", "found"), [("a.b", "1"), ("a b", "1"), ("größe", "1"), ("a'b", None), ("a[0]", None), ("$", "1")]
)
def test_any_name_of_a_column_is_looked_up_as_it_is(name, found):
    stats = json.dumps({"minValues": {name: 1, "a": {"b": 2}}})

    # By itself it is read as a whole, beside a damaged one value by value.
    assert read(stats, path=(name,))[0][0] == "1"
    assert read(stats, "{", path=(name,))[0][0] == found


def test_values_are_texts_whatever_they_are_in_json():
    rows = [
        f'{{"minValues":{{"c":{value}}}}}' for value in ("1", "1.5", "true", '"x"', "null", '"NaN"', "1e3")
    ]

    assert [row[0] for row in read(*rows)] == ["1", "1.5", "true", "x", None, "NaN", "1000"]


def test_parsed_statistics_are_taken_as_they_are():
    parsed = pl.Series(
        [{"numRecords": 3, "minValues": {"c": 1}, "maxValues": {"c": 9}, "nullCount": {"c": 0}}, None]
    )

    found = find_parsed(parsed, ("c",))

    assert found is not None
    assert (found.minima.to_list(), found.maxima.to_list()) == ([1, None], [9, None])
    assert (found.null_count.to_list(), found.records.to_list()) == ([0, None], [3, None])


@pytest.mark.parametrize("path", [("d",), ("c", "x"), ()])
def test_a_column_that_is_not_among_parsed_statistics_is_not_found(path):
    parsed = pl.Series(
        [{"numRecords": 3, "minValues": {"c": 1}, "maxValues": {"c": 9}, "nullCount": {"c": 0}}]
    )

    assert find_parsed(parsed, path) is None


@pytest.mark.parametrize("name", ["*", "^a.*$", "^x$"])
def test_a_name_that_is_a_pattern_elsewhere_is_that_of_its_own_column(name):
    text = json.dumps(
        {
            "numRecords": 3,
            "minValues": {"ab": 100, name: 5},
            "maxValues": {"ab": 200, name: 6},
            "nullCount": {"ab": 1, name: 2},
        }
    )
    paths = [("ab",), (name,)]
    found = read_statistics(pl.Series([text]), paths)[(name,)]
    assert (found.minima.item(), found.maxima.item(), found.null_count.item()) == ("5", "6", 2)

    typed = find_parsed(pl.Series([json.loads(text)]), (name,))
    assert typed is not None
    assert (typed.minima.item(), typed.maxima.item()) == (5, 6)
    # As bounds are made of it.
    assert (typed.null_count != 0).to_list() == [True]
