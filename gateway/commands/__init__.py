"""The subcommands of ``sluice``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Final

from gateway.commands.config_argument import take_config
from gateway.commands.output import tell, write_out
from gateway.config.faults import ConfigError, Fault
from gateway.config.nearest import nearest
from gateway.errors import GatewayError

# In the order of a user's first day: the module of a command and its help. The help is here, so that
# ``sluice --help`` imports no module. A module provides configure(parser) and run(args, env).
COMMANDS: Final = {
    "demo": ("demo", "try it: serve a sample share on 127.0.0.1, without any configuration"),
    "serve": ("serve", "run the gateway, or some of its services, from a configuration file"),
    "check-config": ("check_config", "check a configuration and say what it would serve"),
    "health": ("health", "ask a running process whether it is alive, or ready to serve"),
    "token": ("token", "create a recipient's token, its hash for the configuration, and its profile file"),
    "keys": ("keys", "generate keys for the configuration"),
    "verify-storage": (
        "verify_storage",
        "prove that the credentials of each storage open one directory and nothing else",
    ),
    "revoke": ("revoke", "revoke a recipient at once, and its credentials as far as the stores allow"),
    "pipeline": ("pipeline", "run the data pipeline: usage tables, indexes of logs, views"),
    "usage": ("usage", "report usage: tables, recipients, hours of a day, anomalies, readers of a location"),
    "compare": ("compare", "read the same tables from two sharing servers and report every difference"),
    "version": ("version", "print the version, and the vendors that are installed"),
}
_EPILOG: Final = """\
first steps:
  sluice demo                                 try it: a sample share on 127.0.0.1, no configuration
  sluice check-config --config server.yaml    see what a configuration would serve
  sluice serve --config server.yaml           serve it

before sharing directories:
  sluice verify-storage --config server.yaml    prove that credentials open one directory and nothing else
when a token or a credential has leaked:
  sluice revoke RECIPIENT --config server.yaml
who was given what, views, and indexes of large tables (needs Spark):
  sluice pipeline worker --config server.yaml

`sluice COMMAND --help` tells more about each.
"""


def dispatch(
    arguments: Sequence[str], env: Mapping[str, str], *, on_import: Callable[[], None] = lambda: None
) -> int:
    """Run the command that the arguments name, and return the exit status.

    ``on_import`` is called before the command runs, when its module is imported.
    """
    try:
        args = parse_arguments(arguments)
        on_import()
        status: int = args.run(args, env)
    except ConfigError as exc:
        return _complain(str(exc), 2)
    except GatewayError as exc:
        return _complain(exc.message, 1)
    except KeyboardInterrupt:
        return 130
    except OSError:
        # Was it the output? Then another line fails too; else it stands before a traceback.
        failure = write_out("\n")
        if failure is None:
            raise
        return tell(failure)
    return status


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments of a command; raise ``ConfigError`` if there is no such command."""
    # Who gives no command wants to know which there are.
    given = list(arguments) or ["--help"]
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        message = f"there is no command {given[0]!r}, see: sluice --help"
        raise ConfigError([Fault(path="", message=message, suggestion=nearest(given[0], COMMANDS))])
    parser = _parser(next((word for word in given if not word.startswith("-")), ""))
    args, rest = parser.parse_known_args(given)
    if left := take_config(args, rest):
        parser.error(f"there is no argument {' '.join(left)}, see: sluice {given[0]} --help")
    return args


def _complain(message: str, status: int) -> int:
    print(f"sluice: {message}", file=sys.stderr)
    return status


def _parser(chosen: str) -> argparse.ArgumentParser:
    """Return a parser that lists every command and has the arguments of the chosen one."""
    parser = argparse.ArgumentParser(
        prog="sluice",
        description="A Delta Sharing gateway: presigned URLs and directory-scoped credentials for tables.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sluice {metadata.version('sluice-gateway')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module_name, help_) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=help_,
            description=f"{help_[0].upper()}{help_[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # A command may import for a second, and a probe runs ``sluice health`` every few seconds.
        if name == chosen:
            module: ModuleType = import_module(f"gateway.commands.{module_name}")
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser
