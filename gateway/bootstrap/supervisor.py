"""Keeps several workers running, and is to the outside the one process that they make up."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

from gateway.adapters.ops_server import OK, serve_ops
from gateway.adapters.shared_rate import new_memory
from gateway.adapters.worker_link import Message, received
from gateway.adapters.worker_metrics import WorkerMetrics
from gateway.bootstrap.readiness import is_starting, missing
from gateway.bootstrap.signals import stop_signals
from gateway.bootstrap.worker import Inheritance
from gateway.config.schema import Config
from gateway.edge.server import cannot_listen

# A worker that has lived for so long did not die of how it was started.
_SETTLED: Final = timedelta(seconds=10)
_TOO_MANY: Final = 5
_FIRST_PAUSE: Final = timedelta(milliseconds=100)
_LONGEST_PAUSE: Final = timedelta(seconds=10)
# Far more than a start with a large configuration takes; a worker that serves reports every second.
_SILENCE: Final = timedelta(minutes=2)

log = logging.getLogger(__name__)


async def supervise(config: Config, command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the configured number of workers until SIGINT or SIGTERM, and return the exit status.

    The command starts a worker, once ``--worker`` and what it inherits are added to it.
    """
    async with AsyncExitStack() as stack:
        sockets = await stack.enter_async_context(_bound(config.host, config.port))
        buckets = new_memory()
        stack.callback(os.close, buckets)
        supervisor = Supervisor(command=command, env=env, sockets=sockets, buckets=buckets)
        ops = await stack.enter_async_context(
            serve_ops(config.metrics.listen, supervisor.metrics.registry, supervisor.readiness, missing)
        )
        supervisor.on_stop = ops.drain
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, supervisor.reload)
        with stop_signals(supervisor.stop):
            log.info("starting %d workers", config.http.workers)
            return await supervisor.run(config.http.workers)


def pause_after(deaths: int) -> timedelta:
    """Return how long to wait before a worker is started again that has died so many times in a row."""
    # Far below what a span can hold, however long it goes on.
    return min(_FIRST_PAUSE * (1 << min(deaths - 1, 10)), _LONGEST_PAUSE)


def worst_states(reports: Iterable[Mapping[str, str]], *, has_started: bool = False) -> Mapping[str, str]:
    """Return the worst state of each service over the workers' reports.

    A failure outranks start-up: a worker that restarts during an outage must not make the process unready.
    After the process has started, a worker in start-up counts only if no other worker reports a state.
    """

    def rank(state: str) -> int:
        if is_starting(state):
            return 0 if has_started else 2
        return 1 if state == OK else 3

    states: dict[str, str] = {}
    for report in reports:
        for name, state in report.items():
            if name not in states or rank(state) > rank(states[name]):
                states[name] = state
    return states


class Supervisor:
    """Starts workers, replaces those that end, and passes on what it is asked."""

    def __init__(
        self,
        *,
        command: Sequence[str],
        env: Mapping[str, str],
        sockets: tuple[socket.socket, ...],
        buckets: int,
        silence: timedelta = _SILENCE,
    ) -> None:
        self._command = command
        self._has_started = False
        self._env = env
        self._sockets = sockets
        self._buckets = buckets
        self._silence = silence
        self._workers: dict[int, _Worker] = {}
        self._stopping = asyncio.Event()
        self._status = 0
        self.metrics = WorkerMetrics(lambda: len(self._serving()))
        self.on_stop: Callable[[], None] = lambda: None

    async def run(self, count: int) -> int:
        """Keep so many workers until they are asked to stop; return 1 when they cannot be kept, or 0."""
        await asyncio.gather(*(self._keep(number) for number in range(1, count + 1)))
        return self._status

    def stop(self) -> None:
        """Ask every worker to stop; asked again, they do not wait for requests."""
        if not self._stopping.is_set():
            log.info("stopping: requests under way may finish")
            self._stopping.set()
            self.on_stop()
            # Otherwise clients would queue up where no worker takes them any more.
            for sock in self._sockets:
                sock.close()
        for worker in self._workers.values():
            worker.send(signal.SIGTERM)

    def reload(self) -> None:
        """Ask every worker to read the configuration again; one that is just starting reads it anyway."""
        for worker in self._serving():
            worker.send(signal.SIGHUP)

    async def readiness(self) -> Mapping[str, str]:
        """Return the worst state of each service over all workers, less those being replaced."""
        reports = [worker.services or {} for worker in self._serving()]
        states = worst_states(reports, has_started=self._has_started)
        self._has_started |= bool(states) and not missing(states)
        return states or {"workers": "none serves"}

    def _serving(self) -> Sequence[_Worker]:
        # A copy: metrics are collected in another thread.
        return [worker for worker in tuple(self._workers.values()) if worker.services is not None]

    async def _keep(self, number: int) -> None:
        loop, deaths = asyncio.get_running_loop(), 0
        while not self._stopping.is_set():
            started_at = loop.time()
            ending = await self._run_worker(number)
            if self._stopping.is_set():
                return
            lived = timedelta(seconds=loop.time() - started_at)
            deaths = 1 if lived >= _SETTLED else deaths + 1
            # While others serve, trying again costs nothing and giving up costs what they serve.
            if deaths >= _TOO_MANY and not self._serving():
                log.error("worker %d %s, as did those before it: giving up", number, ending)
                self._status = 1
                self.stop()
                return
            pause = pause_after(deaths)
            log.error("worker %d %s; another starts in %.1f s", number, ending, pause.total_seconds())
            self.metrics.count_restart()
            await self._pause(pause)

    async def _run_worker(self, number: int) -> str:
        """Run one worker to its end, and return how it ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await self._start(theirs)
            except OSError as exc:
                ours.close()
                return f"cannot be started: {exc.strerror}"
        worker = self._workers[number] = _Worker(number, process, self.metrics, self._silence)
        log.info("worker %d is process %d", number, process.pid)
        if self._stopping.is_set():
            worker.send(signal.SIGTERM)
        try:
            return await worker.attend(ours)
        finally:
            del self._workers[number]
            self.metrics.retire(number)

    async def _start(self, link: socket.socket) -> asyncio.subprocess.Process:
        inheritance = Inheritance(
            http=tuple(sock.fileno() for sock in self._sockets), buckets=self._buckets, link=link.fileno()
        )
        return await asyncio.create_subprocess_exec(
            *self._command,
            "--worker",
            inheritance.to_argument(),
            env=self._env,
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=inheritance.descriptors,
            # A terminal's Ctrl-C goes to a whole group: it must not reach workers twice.
            process_group=0,
        )

    async def _pause(self, span: timedelta) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(span.total_seconds()):
                await self._stopping.wait()


class _Worker:
    """A worker process, from its start to its end."""

    def __init__(
        self,
        number: int,
        process: asyncio.subprocess.Process,
        metrics: WorkerMetrics,
        silence: timedelta,
    ) -> None:
        self._number = number
        self._process = process
        self._metrics = metrics
        self._silence = silence
        # What it last said of the services that it needs; None while it does not serve.
        self.services: Mapping[str, str] | None = None

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def attend(self, link: socket.socket) -> str:
        """Take its reports until it ends, and return how it did."""
        async with received(link) as messages:
            while message := await self._next(messages):
                self._take(message)
        self.services = None
        status = await self._process.wait()
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    async def _next(self, messages: AsyncIterator[Message]) -> Message | None:
        try:
            async with asyncio.timeout(self._silence.total_seconds()):
                return await anext(messages, None)
        except TimeoutError:
            log.error("worker %d does not report any more: it is killed", self._number)  # noqa: TRY400 -- there is no more to tell
            self.send(signal.SIGKILL)
            return None

    def _take(self, message: Message) -> None:
        if message.metrics is not None:
            self._metrics.update(self._number, message.metrics)
        if message.services is not None:
            self.services = message.services


@asynccontextmanager
async def _bound(host: str, port: int) -> AsyncIterator[tuple[socket.socket, ...]]:
    """Give a socket for each address that a single process would listen on."""
    try:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, host, port, start_serving=False
        )
    except OSError as exc:
        raise cannot_listen(host, port, exc) from exc
    sockets = tuple(sock.dup() for sock in server.sockets)
    server.close()
    try:
        yield sockets
    finally:
        for sock in sockets:
            sock.close()
