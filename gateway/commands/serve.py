"""``sluice serve``: run the parts that a configuration names, until asked to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from gateway.adapters.config_check import load_or_tell_all
from gateway.adapters.json_log import configure_logging
from gateway.bootstrap import Running, running
from gateway.bootstrap.given import Given
from gateway.bootstrap.signals import stop_signals
from gateway.bootstrap.worker import Inheritance
from gateway.commands.config_argument import add_config_argument
from gateway.commands.fault_list import list_faults
from gateway.config.faults import ConfigError
from gateway.config.load import Loaded, locate
from gateway.config.schema import Config

_NOTHING: Final = Given()
_SAME_WISH: Final = 1.0

log = logging.getLogger(__name__)


_EPILOG: Final = """\
`sluice serve FILE` is the same as `sluice serve --config FILE`.

exit status:
  0  it was asked to stop, and did
  1  it could not start or go on: a port is taken, or workers end again and again
  2  the configuration has faults, all of which are listed, or wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_config_argument(parser, "the configuration; a reference server's YAML works as it is")
    # Only a supervisor has something to hand down.
    parser.add_argument("--worker", type=Inheritance.from_argument, help=argparse.SUPPRESS)


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    file: Path = args.config
    try:
        return _run(file, args.worker, env)
    except ConfigError as exc:
        if not file.exists():
            raise
        print(*list_faults(file, exc.faults), sep="\n", file=sys.stderr)
        return 2


def _run(file: Path, inheritance: Inheritance | None, env: Mapping[str, str]) -> int:
    def source() -> Loaded:
        return load_or_tell_all(file, env)

    config = begin(source)
    if config.http.workers > 1 and inheritance is None:
        from gateway.bootstrap.supervisor import supervise  # noqa: PLC0415 -- for this process alone

        # A worker is started the way that this process was.
        return asyncio.run(supervise(config, [sys.executable, *sys.orig_argv[1:]], env))
    given = _NOTHING if inheritance is None else inheritance.take_over()
    try:
        return run_until_stopped(config, source, file, given=given)
    except ConfigError as exc:
        # What only the parts themselves can find is as much a fault of the file.
        raise ConfigError(locate(exc.faults, file)) from exc


def begin(source: Callable[[], Loaded]) -> Config:
    """Return the configuration, and log from here on as it says."""
    loaded = source()
    configure_logging(loaded.config.log.level)
    for warning in loaded.warnings:
        log.warning("configuration: %s", warning)
    return loaded.config


def run_until_stopped(
    config: Config,
    source: Callable[[], Loaded],
    file: Path,
    *,
    on_start: Callable[[Running], None] = lambda _: None,
    given: Given = _NOTHING,
) -> int:
    """Run what is configured until SIGINT or SIGTERM; a second one does not wait for requests."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(running(config, source, file, given), on_start))
    return 0


async def _serve(process: AbstractAsyncContextManager[Running], on_start: Callable[[Running], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    asked_at = 0.0

    def ask_to_stop() -> None:
        nonlocal asked_at
        if not stop.is_set():
            asked_at = loop.time()
            stop.set()
        # A terminal, a shell and a process manager may each pass on one and the same wish.
        elif task is not None and loop.time() - asked_at > _SAME_WISH:
            task.cancel()

    # The file has just been read: a hangup asks for nothing yet, but unheard it would end the process.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    with stop_signals(ask_to_stop):
        try:
            async with process as served:
                loop.add_signal_handler(signal.SIGHUP, served.reload)
                on_start(served)
                await stop.wait()
                log.info("stopping: requests under way may finish")
        except asyncio.CancelledError:
            log.warning("stopped without waiting for requests under way")


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415 -- not made for every platform

    return uvloop.new_event_loop
