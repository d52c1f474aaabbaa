"""The ``sluice`` command: the only reader of the process' environment and arguments."""

from __future__ import annotations

import os
import sys


def main() -> int:
    # Before grpc is imported: its core would otherwise write its own notes to our log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from gateway.commands import dispatch  # noqa: PLC0415 -- see above

    return dispatch(sys.argv[1:], dict(os.environ))


if __name__ == "__main__":
    sys.exit(main())
