from __future__ import annotations

import sys
import traceback

import pytest

from tests.cases import each_case

TABLE = [(1, "odd"), (2, "even"), (3, "even"), (4, "odd")]


@each_case(("number", "kind"), TABLE)
def parity(number, kind):
    assert kind == ("odd" if number % 2 else "even")


@each_case("number, kind", TABLE)
async def parity_async(number, kind):
    assert kind == ("odd" if number % 2 else "even")


def notes_of(group: ExceptionGroup) -> list[list[str]]:
    return [error.__notes__ for error in group.exceptions]


EXPECTED = [["case: number=3, kind='even'"], ["case: number=4, kind='odd'"]]


def test_every_failing_case_is_reported_with_its_values():
    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as failed:
        parity()
    assert notes_of(failed.value) == EXPECTED


async def test_coroutine_is_awaited_for_each_case():
    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as failed:
        await parity_async()
    assert notes_of(failed.value) == EXPECTED


@each_case("part", ["a", "b"])
@each_case("whole", ["ab", "ba"])
def test_tables_are_combined_and_fixtures_are_given(tmp_path, whole, part):
    assert part in whole
    assert tmp_path.is_dir()


def test_a_tuple_is_one_value_where_there_is_one_name():
    seen = []

    @each_case("pair", [(1, 2), pytest.param((3, 4))])
    def collect(pair):
        seen.append(pair)

    collect()
    assert seen == [(1, 2), (3, 4)]


@pytest.mark.parametrize("outcome", [lambda: pytest.fail("wrong"), lambda: pytest.skip("not here"), sys.exit])
def test_an_outcome_that_is_no_exception_fails_the_case_where_it_happened(outcome):
    @each_case("number", [1])
    def give_up(number):
        outcome()

    with pytest.raises(ExceptionGroup, match="1 of 1 cases failed") as failed:
        give_up()
    [error] = failed.value.exceptions
    assert "give_up" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize(
    ("cases", "ids", "message"),
    [
        ([], None, "needs a case"),
        ([(1, 2), (3,)], None, "a value for each name"),
        ([(1, 2)], ["a", "b"], "each case needs an id"),
        ([pytest.param(1, 2, marks=pytest.mark.slow)], None, "no marks"),
    ],
)
def test_a_table_with_a_mistake_is_rejected_when_it_is_imported(cases, ids, message):
    with pytest.raises(AssertionError, match=message):
        each_case("a, b", cases, ids)


def test_an_interruption_ends_the_test():
    @each_case("number", [1, 2])
    def interrupted(number):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
