"""The ``sluice`` command: the only reader of the process' environment and arguments."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    _end_when_asked()
    # Before grpc is imported: its core would otherwise write its own notes to our log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Before pydantic is imported: it would search every installed package for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Collections during imports take time and find no garbage.
    gc.disable()
    from gateway.commands import dispatch  # noqa: PLC0415 -- see above

    try:
        status: object = dispatch(sys.argv[1:], dict(os.environ), on_import=_start_collecting)
    except SystemExit as exc:
        # How argparse ends, after --help and after wrong usage.
        status = exc.code
    leave(status if isinstance(status, int) else 1)


def leave(status: int) -> NoReturn:
    """End the process as it is, without taking the interpreter apart first.

    A read of an object store that was given up may still be running on a thread of its library's. Should it
    report back while the interpreter is being taken apart, the process aborts, whatever its work came to.
    """
    from gateway.commands.output import tell, write_out  # noqa: PLC0415 -- as in main

    logging.shutdown()
    if failure := write_out():
        status = status or tell(failure)
    # None when it is closed from the start; whoever read it may be gone: nobody can be told.
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.flush()
    os._exit(status)


def _start_collecting() -> None:
    # Imported objects live as long as the process: no later collection traverses them.
    gc.freeze()
    gc.enable()


def _end_when_asked() -> None:
    # Linux drops a signal for which the first process of a container has no handler. Until there is something
    # to finish, and a handler for that, being asked to stop ends it, as it does any other process.
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))


if __name__ == "__main__":
    main()
