"""Waiting for a condition, with a deadline that only a hang exceeds."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

# Far longer than anything but the start of a JVM takes on a machine whose load is 50.
SECONDS = 60.0
# For the start of a process that imports the gateway, or of another server.
START_SECONDS = 180.0
# For a timeout under test, tried in turn until one is long enough to reach the code that it ends.
DEADLINES = (0.1, 1.0, 10.0, 60.0)

Result = TypeVar("Result")
What = str | Callable[[], str]


def eventually(
    condition: Callable[[], Result | None], what: What = "", *, seconds: float = SECONDS, pause: float = 0.05
) -> Result:
    """Return the first true result of the condition, or fail with a message that says what was waited for.

    A condition that can no longer become true raises: its exception ends the wait at once.
    """
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, _failure(condition, what, seconds)
        time.sleep(pause)
    return result


@overload
async def eventually_async(
    condition: Callable[[], Awaitable[Result | None]],
    what: What = "",
    *,
    seconds: float = SECONDS,
    pause: float = 0.01,
) -> Result: ...


@overload
async def eventually_async(
    condition: Callable[[], Result | None], what: What = "", *, seconds: float = SECONDS, pause: float = 0.01
) -> Result: ...


async def eventually_async(
    condition: Callable[[], Any], what: What = "", *, seconds: float = SECONDS, pause: float = 0.01
) -> Any:
    """Like `eventually`, while the event loop runs; the condition may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while not (result := await _result(condition())):
        assert time.monotonic() < deadline, _failure(condition, what, seconds)
        await asyncio.sleep(pause)
    return result


async def _result(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found


def _failure(condition: Callable[[], Any], what: What, seconds: float) -> str:
    text = what() if callable(what) else what
    return f"timed out after {seconds:g} s waiting for: {text or _source(condition)}"


def _source(condition: Callable[[], Any]) -> str:
    name = getattr(condition, "__name__", repr(condition))
    return " ".join(inspect.getsource(condition).split()) if name == "<lambda>" else name
