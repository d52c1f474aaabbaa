"""Requests at a steady rate, the same mix each time, each followed to its end and judged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count, cycle
from ssl import SSLContext

from tests.integration.fleet.client import ATTEMPT_SECONDS, Client, Trouble, sessions, to_trouble
from tests.integration.fleet.judge import Wrong
from tests.integration.fleet.lake import Lake
from tests.integration.fleet.tally import Setback, Tally
from tests.waiting import eventually_async

STREAMS = ("query", "slow query")
URL_MODE = ("metadata", "query", "slow query", "file")
DIR_MODE = ("credential",)
LISTS = ("shares", "tables")
# Of an odd length: whoever asks for something asks for something else the next time.
MIX = (
    *("query", "query", "credential", "shares", "metadata", "file", "query", "credential", "tables"),
    *("slow query", "credential", "metadata", "file", "query", "credential", "shares", "file"),
)
_OPERATIONS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "shares": Client.shares,
    "tables": Client.tables,
    "metadata": Client.metadata,
    "query": Client.query,
    "slow query": Client.slow_query,
    "file": Client.file,
    "credential": Client.credential,
}
# The official client in Python tries for as long, with pauses that double from a tenth of a second on. Ours
# stop doubling, as a test waits for the last of them.
PATIENCE = 100.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
# The table grows with every so many requests.
_REQUESTS_PER_COMMIT = 50
# Longer than a client tries: what is not answered by then is lost.
_SETTLED = PATIENCE + ATTEMPT_SECONDS + 30
# More than are under way while the machine keeps up with the rate.
_MOST_UNDER_WAY = 40


class Load:
    """A crowd of recipients; the number of a request says who asks for what."""

    def __init__(self, lake: Lake, clients: Sequence[Client], *, patience: float) -> None:
        self.tally = Tally()
        self._lake = lake
        self._clients = clients
        self._patience = patience
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, rate: float, mix: Sequence[str] = MIX) -> None:
        """Send so many a second until cancelled, or as many as the machine keeps up with.

        Credentials go on however long they take: a service that hangs must meet more and more of them.
        """
        started, operations = time.monotonic(), cycle(mix)
        for number in count():
            await asyncio.sleep(max(started + number / rate - time.monotonic(), 0))
            while self.tally.under_way.total() - self.tally.under_way["credential"] >= _MOST_UNDER_WAY:
                await asyncio.sleep(0.05)
                # None is made up for.
                started = time.monotonic() - number / rate
            if number % _REQUESTS_PER_COMMIT == _REQUESTS_PER_COMMIT - 1:
                await asyncio.to_thread(self._lake.grow)
            self._begin(number, next(operations))

    async def answered(self, more: int = 1, *, of: Sequence[str] | None = None) -> None:
        """Wait until so many more requests have been answered."""
        aim = self.tally.count("answered", of) + more
        await eventually_async(
            lambda: self.tally.count("answered", of) >= aim,
            f"{more} more are answered",
            seconds=_SETTLED,
            pause=0.05,
        )

    async def have_urls(self) -> None:
        """Wait until every client has a URL, so that none of them needs a query to read a file."""
        await eventually_async(
            lambda: all(client.has_url for client in self._clients), seconds=_SETTLED, pause=0.05
        )

    async def read(self, operation: str, answers: int) -> None:
        """Send requests for streams, and wait until so many answers have begun and not yet ended."""
        async with asyncio.timeout(_SETTLED):
            while sum(client.reading for client in self._clients) < answers:
                for number in range(answers - self.tally.under_way[operation]):
                    self._begin(number, operation)
                await asyncio.sleep(0.01)

    def note(self, text: str) -> None:
        """Have something told beside the table."""
        self.tally.notes.append(text)

    def longest_wait(self, since: float = 0) -> float:
        """Return how long an attempt that began later has waited for the first byte of what it asked for."""
        waits = (wait for client in self._clients for wait in client.waits)
        return max((seconds for began_at, seconds in waits if began_at > since), default=0)

    async def settle(self) -> None:
        """Wait for all that is under way."""
        tasks = set(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_SETTLED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, number: int, operation: str) -> None:
        client = self._clients[number % len(self._clients)]
        self.tally.sent[operation] += 1
        self.tally.under_way[operation] += 1
        task = asyncio.create_task(self._follow(client, operation))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, client: Client, operation: str) -> None:
        outcome = "lost"
        try:
            outcome = await self._ask(client, operation)
        finally:
            self.tally.outcomes[outcome][operation] += 1
            self.tally.under_way[operation] -= 1

    async def _ask(self, client: Client, operation: str) -> str:
        pause, give_up_at = _FIRST_PAUSE, time.monotonic() + self._patience
        while True:
            began_at = time.monotonic()
            try:
                await _OPERATIONS[operation](client)
            except Wrong as exc:
                self.tally.faults.append(f"{operation}: {exc}")
                return "wrong"
            except Exception as exc:
                trouble = to_trouble(exc)
                if trouble is None:
                    raise
                self._note(operation, trouble, began_at)
                if not trouble.is_passing or time.monotonic() > give_up_at:
                    return "failed"
                self.tally.retried[operation] += 1
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return "answered"

    def _note(self, operation: str, trouble: Trouble, began_at: float) -> None:
        self.tally.setbacks.append(
            Setback(
                operation,
                trouble.reason,
                began_at,
                time.monotonic(),
                trouble.says_when,
                trouble.request_id,
            )
        )


@asynccontextmanager
async def under_load(
    base_url: str,
    lake: Lake,
    *,
    rate: float,
    patience: float = PATIENCE,
    mix: Sequence[str] = MIX,
    tls: SSLContext | None = None,
) -> AsyncIterator[Load]:
    """Send requests while the block runs, then wait for the last of their answers.

    Without patience nobody comes back: what fails is seen to fail.
    """
    async with sessions(tls) as session:
        clients = [Client(base_url, lake, recipient, session) for recipient in lake.recipients]
        load = Load(lake, clients, patience=patience)
        sending = asyncio.create_task(load.send(rate, mix))
        try:
            yield load
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            await load.settle()
