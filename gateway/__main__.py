"""The ``sluice`` command: the only reader of the process' environment and arguments."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    # Before grpc is imported: its core would otherwise write its own notes to our log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from gateway.commands import dispatch  # noqa: PLC0415 -- see above

    leave(dispatch(sys.argv[1:], dict(os.environ)))


def leave(status: int) -> NoReturn:
    """End the process as it is, without taking the interpreter apart first.

    A read of an object store that was given up may still be running on a thread of its library's. Should it
    report back while the interpreter is being taken apart, the process aborts, whatever its work came to.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Whoever read it is gone; nobody can be told.
            status = status or 1
    os._exit(status)


if __name__ == "__main__":
    main()
