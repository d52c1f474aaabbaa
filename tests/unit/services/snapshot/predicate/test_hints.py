from __future__ import annotations

import inspect
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.services.snapshot.predicate.condition import All
from tests.unit.services.snapshot.predicate.tables import (
    column,
    files_of,
    hints_of,
    kept_by,
    metadata_with,
    stats_of,
)

METADATA = metadata_with(column("c", "long"), column("s", "string"))


def leaf(name, value, kind):
    return [
        {"op": "column", "name": name, "valueType": kind},
        {"op": "literal", "value": value, "valueType": kind},
    ]


EQUAL = {"op": "equal", "children": leaf("c", "5", "long")}


def test_no_hints_ask_for_nothing():
    hints = hints_of(METADATA)

    assert hints.condition is None
    assert (hints.used, hints.skipped) == ({"sql": 0, "json": 0}, {"sql": 0, "json": 0})


def test_hints_are_counted_by_kind_and_outcome():
    hints = hints_of(METADATA, "c = 1", "c = ", "none = 1", "c > 0", predicate=EQUAL)

    assert hints.used == {"sql": 2, "json": 1}
    assert hints.skipped == {"sql": 2, "json": 0}


def test_a_json_hint_that_is_not_understood_is_counted():
    hints = hints_of(METADATA, predicate="nonsense")

    assert (hints.used["json"], hints.skipped["json"]) == (0, 1)
    assert hints.condition is None


def test_a_hint_of_which_a_part_can_be_used_is_used():
    hints = hints_of(METADATA, "c = 1 AND f(c) = 2", "c = 1 OR f(c) = 2")

    assert (hints.used["sql"], hints.skipped["sql"]) == (1, 1)


def test_hints_that_can_never_leave_anything_out_are_skipped():
    # A range of texts says nothing about the numbers that they may be.
    hints = hints_of(
        METADATA, "CAST(s AS INT) = 1", "s = 5", "c = 'x'", "c = TIMESTAMP '2021-01-01 00:00:00'"
    )

    assert hints.skipped["sql"] == 4


def test_all_hints_must_hold():
    files = files_of(*(stats_of(value, value, 0, 1) for value in range(4)))

    kept = kept_by(files, METADATA, "c > 0", "c < 3", predicate={"op": "not", "children": [EQUAL]})

    assert kept == [False, True, True, False]
    assert isinstance(hints_of(METADATA, "c > 0", predicate=EQUAL).condition, All)


def test_as_many_hints_are_used_as_a_query_can_afford():
    hints = hints_of(METADATA, *["c = 1"] * 300)

    assert (hints.used["sql"], hints.skipped["sql"]) == (200, 100)


def test_a_hint_that_costs_too_much_is_skipped_as_a_whole():
    hints = hints_of(METADATA, " OR ".join(["c = 1"] * 201), predicate=EQUAL)

    assert hints.used == {"sql": 0, "json": 1}
    assert hints.skipped == {"sql": 1, "json": 0}


def test_many_long_hints_are_not_all_read():
    # Of 72,000 characters each, most of them spaces; all hints together may have 512 Ki.
    values = (" " * 28 + ",").join(["1"] * 2_400)
    hints = hints_of(METADATA, *[f"c IN ({values})"] * 8)

    assert (hints.used["sql"], hints.skipped["sql"]) == (7, 1)


@given(st.lists(st.text(max_size=20), max_size=3), st.text(max_size=20))
def test_hints_are_never_an_error(sql, predicate):
    hints = hints_of(METADATA, *sql, predicate=predicate)

    assert sum(hints.used.values()) + sum(hints.skipped.values()) == len(sql) + bool(predicate)


@pytest.mark.parametrize("number", ["1" * 200_000, "1" * 200_000 + ".5", "1e" + "9" * 200_000])
def test_a_number_that_no_column_can_hold_is_skipped(number):
    trees = [{"op": "equal", "children": leaf("c", number, kind)} for kind in ("long", "double")]
    bare = json.dumps(trees[0]).replace(f'"{number}"', number)

    assert hints_of(METADATA, f"c = {number}", f"c IN (1, {number})").skipped["sql"] == 2
    assert [hints_of(METADATA, predicate=tree).skipped["json"] for tree in (*trees, bare)] == [1, 1, 1]


def test_half_a_character_is_skipped():
    half = "\ud800"
    hints = hints_of(
        METADATA,
        f"s = '{half}'",
        f"s LIKE '{half}%'",
        "c = 1",
        predicate={"op": "equal", "children": leaf("s", half, "string")},
    )

    assert (hints.used, hints.skipped) == ({"sql": 1, "json": 0}, {"sql": 2, "json": 1})


def test_a_hint_for_which_the_stack_is_too_short_is_skipped():
    deep = "(" * 90 + "c = 1" + ")" * 90

    hints = _below(
        sys.getrecursionlimit() - len(inspect.stack(0)) - 150, lambda: hints_of(METADATA, deep, "c = ")
    )

    assert hints_of(METADATA, deep).used["sql"] == 1
    assert hints.skipped["sql"] == 2


def _below(frames, call):
    return call() if frames == 0 else _below(frames - 1, call)


def test_a_damaged_schema_skips_every_hint():
    damaged = metadata_with()

    assert hints_of(damaged, "c = 1", predicate=json.dumps(EQUAL)).skipped == {"sql": 1, "json": 1}


def test_no_more_casts_are_made_than_a_query_can_afford():
    metadata = metadata_with(column("c", "long"), column("p", "integer"), partitions=("p",))
    casts = [f"CAST(p AS DECIMAL({digits}, {scale})) > 0" for scale in (0, 1) for digits in range(20, 35)]
    # Each as often as it likes, as it is made once.
    hints = hints_of(metadata, *(text for text in casts for _ in range(5)))

    assert (hints.used["sql"], hints.skipped["sql"]) == (100, 50)


def test_no_more_columns_are_read_than_a_query_can_afford():
    names = [f"c{number}" for number in range(30)]
    metadata = metadata_with(*(column(name, "long") for name in names))

    hints = hints_of(metadata, *(f"{name} > 1" for name in names), "c0 < 9")

    assert (hints.used["sql"], hints.skipped["sql"]) == (21, 10)
    assert hints_of(metadata, " OR ".join(f"{name} > 1" for name in names)).used["sql"] == 0


def test_a_hint_of_too_many_columns_leaves_room_for_those_after_it():
    names = [f"c{number}" for number in range(30)]
    metadata = metadata_with(*(column(name, "long") for name in names))

    hints = hints_of(metadata, " AND ".join(f"{name} > 1" for name in names), "c1 = 1", "c2 = 2")

    assert (hints.used["sql"], hints.skipped["sql"]) == (2, 1)
