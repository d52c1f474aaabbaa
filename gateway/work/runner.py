"""Has jobs run by a process of its own, which is asked and answers in lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Protocol

from gateway.domain.job import JobKind
from gateway.work.redaction import Redaction

# A result names at most the files of an index.
_LONGEST_LINE: Final = 32 * 1024 * 1024
_TAIL: Final = 16 * 1024
# A Java machine that is asked to end leaves nothing behind; one that does not end in time is killed.
_PATIENCE: Final = timedelta(seconds=5)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    message: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A run to be made."""

    kind: JobKind
    plan: Mapping[str, Any] = field(repr=False)
    spark: Mapping[str, Any] = field(repr=False)
    # Hadoop settings, with secrets.
    access: Mapping[str, str] = field(repr=False)


class RunFailed(Exception):
    """A run that ended badly, in words without secrets."""

    def __init__(self, message: str, *, retry: bool) -> None:
        super().__init__(message)
        self.message = message
        self.retry = retry


class Runner(Protocol):
    async def run(self, order: Order, tell: Callable[[Progress], None]) -> Mapping[str, Any]:
        """Return what a run made; raise ``RunFailed``. Cancelled, it ends the run first."""

    async def close(self) -> None: ...


class ProcessRunner:
    """Starts its process when it is first needed, keeps it from run to run, and replaces it when it died."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command = tuple(command)
        self._env = dict(env)
        self._process: _RunnerProcess | None = None

    @property
    def has_process(self) -> bool:
        """True if the process of the last run is still alive, so that the next run uses it."""
        return self._process is not None and self._process.is_alive

    async def run(self, order: Order, tell: Callable[[Progress], None]) -> Mapping[str, Any]:
        asked = order.plan.get("parameters") or {}
        hide = Redaction(
            order.access, _texts(order.spark.get("conf", {})), values=filter(None, asked.values())
        )
        process = await self._started()
        try:
            return await process.ask(order, tell, hide)
        except RunFailed:
            if not self.has_process:
                await self.close()
            raise
        except BaseException:
            # Nobody waits for what it does now, and it must not go on doing it.
            await self.close()
            raise

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await asyncio.shield(process.end())

    async def _started(self) -> _RunnerProcess:
        if self._process is None or not self._process.is_alive:
            await self.close()
            try:
                # A group of its own, so that it ends with all that it has started.
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    env=self._env,
                    limit=_LONGEST_LINE,
                    start_new_session=True,
                )
            except OSError as exc:
                raise RunFailed(
                    f"the runner cannot be started: {exc.strerror or type(exc).__name__}", retry=True
                ) from exc
            self._process = _RunnerProcess(process)
        return self._process


class _RunnerProcess:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._tail = bytearray()
        self._reading = asyncio.create_task(self._keep_tail())

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, order: Order, tell: Callable[[Progress], None], hide: Redaction) -> Mapping[str, Any]:
        request_id = secrets.token_hex(8)
        request = {
            "id": request_id,
            "job": order.kind,
            "plan": order.plan,
            "spark": order.spark,
            "access": dict(order.access),
        }
        try:
            await self._send(request)
            while (answer := await self._receive()) is not None:
                if answer.get("id") == request_id and (result := _take(answer, tell, hide)) is not None:
                    return result
        except (ConnectionError, ValueError) as exc:
            await self.end()
            raise RunFailed(self._died(hide, "the runner does not speak as agreed"), retry=True) from exc
        await self.end()
        raise RunFailed(self._died(hide, "the runner died"), retry=True)

    async def end(self) -> None:
        """End the process and all that it has started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE.total_seconds()):
                    await self._process.wait()
                    break
        # What it has started may live on without it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _send(self, request: Mapping[str, Any]) -> None:
        stdin = self._process.stdin
        if stdin is None:
            raise ConnectionError
        stdin.write(json.dumps(request).encode() + b"\n")
        await stdin.drain()

    async def _receive(self) -> dict[str, Any] | None:
        """Return the next answer; None at the end. Raise ``ValueError`` for what is none, or too long."""
        stdout = self._process.stdout
        line = await stdout.readline() if stdout is not None else b""
        if not line.endswith(b"\n"):
            return None
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("an answer is an object")  # noqa: TRY004 -- its content is wrong, not our use of it
        return answer

    async def _keep_tail(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (piece := await stderr.read(4096)):
            self._tail += piece
            del self._tail[:-_TAIL]

    def _died(self, hide: Redaction, words: str) -> str:
        status = self._process.returncode
        tail = hide(self._tail.decode(errors="replace"))
        log.warning("%s (status %s); its last words: %s", words, status, tail)
        return f"{words} (status {status}); the worker's log has its last words"


def _take(
    answer: Mapping[str, Any], tell: Callable[[Progress], None], hide: Redaction
) -> Mapping[str, Any] | None:
    """Return the result that an answer holds; None for progress; raise for an error."""
    event = answer.get("event")
    if event == "progress":
        tell(
            Progress(
                message=hide(str(answer.get("message", ""))),
                done=_number(answer.get("done")),
                total=_number(answer.get("total")),
            )
        )
        return None
    result = answer.get("result")
    if event == "result" and isinstance(result, dict):
        return result
    if event == "error":
        raise RunFailed(hide(str(answer.get("message", "")))[:2000], retry=bool(answer.get("retry", True)))
    raise ValueError("an answer is progress, a result or an error")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _texts(conf: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in conf.items()} if isinstance(conf, Mapping) else {}
