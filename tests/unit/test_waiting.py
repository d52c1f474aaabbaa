"""Waiting for conditions."""

from __future__ import annotations

import pytest

from tests.waiting import eventually, eventually_async


def test_first_true_result_is_returned():
    results = iter([0, None, 7, 8])
    assert eventually(lambda: next(results), pause=0) == 7


def test_condition_that_stays_false_fails_with_its_source():
    with pytest.raises(AssertionError, match=r"timed out after 0 s waiting for: .*lambda: is_never\(\)"):
        eventually(lambda: is_never(), seconds=0)  # noqa: PLW0108 -- the source of a lambda is shown
    with pytest.raises(AssertionError, match="timed out after 0 s waiting for: is_never"):
        eventually(is_never, seconds=0)


def test_description_of_the_caller_is_evaluated_at_the_deadline():
    asked: list[int] = []
    with pytest.raises(AssertionError, match="waiting for: there is a leader; log: 1 line"):
        eventually(lambda: asked.append(1), lambda: f"there is a leader; log: {len(asked)} line", seconds=0)


def test_exception_of_a_condition_ends_the_wait():
    with pytest.raises(RuntimeError, match="the process ended"):
        eventually(fail)


async def test_async_twin_takes_functions_and_coroutine_functions():
    results = iter([0, 7])

    async def take() -> int:
        return next(results)

    assert await eventually_async(take, pause=0) == 7
    assert await eventually_async(lambda: 8) == 8
    with pytest.raises(AssertionError, match="timed out after 0 s waiting for: there is a leader"):
        await eventually_async(is_never, "there is a leader", seconds=0)
    with pytest.raises(RuntimeError, match="the process ended"):
        await eventually_async(fail)


def is_never() -> bool:
    return False


def fail() -> bool:
    raise RuntimeError("the process ended")
