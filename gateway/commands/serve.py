"""``sluice serve``: run the parts that a configuration names, until asked to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from gateway.adapters.json_log import configure_logging
from gateway.bootstrap import Running, running
from gateway.config.load import Loaded, load

HELP = "run the gateway, or some of its services, from a configuration file"

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

log = logging.getLogger(__name__)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        required=True,
        type=Path,
        help="the configuration; a reference server's YAML works as it is",
    )


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    file: Path = args.config
    return run_until_stopped(lambda: load(file, env), file)


def run_until_stopped(
    source: Callable[[], Loaded],
    file: Path,
    *,
    on_start: Callable[[Running], None] = lambda _: None,
    http_socket: socket.socket | None = None,
) -> int:
    """Run what the source says until SIGINT or SIGTERM; a second one does not wait for requests."""
    loaded = source()
    configure_logging(loaded.config.log.level)
    for warning in loaded.warnings:
        log.warning("configuration: %s", warning)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(running(loaded.config, source, file, http_socket), on_start))
    return 0


async def _serve(process: AbstractAsyncContextManager[Running], on_start: Callable[[Running], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def ask_to_stop() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, ask_to_stop)
    try:
        async with process as served:
            loop.add_signal_handler(signal.SIGHUP, served.reload)
            on_start(served)
            await stop.wait()
            log.info("stopping: requests under way may finish")
    except asyncio.CancelledError:
        log.warning("stopped without waiting for requests under way")
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
            # All is closed: being asked again must not turn a clean end into a killed process.
            signal.signal(number, signal.SIG_IGN)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415 -- not made for every platform

    return uvloop.new_event_loop
