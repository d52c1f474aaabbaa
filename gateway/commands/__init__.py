"""The subcommands of ``sluice``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Final

from gateway.commands.config_argument import take_config
from gateway.commands.output import tell, write_out
from gateway.config.faults import ConfigError, Fault
from gateway.config.nearest import nearest
from gateway.errors import GatewayError

# In the order of a user's first day. A module brings HELP, configure(parser) and run(args, env).
COMMANDS: Final = {
    "demo": "demo",
    "serve": "serve",
    "check-config": "check_config",
    "health": "health",
    "token": "token",
    "keys": "keys",
    "verify-storage": "verify_storage",
    "revoke": "revoke",
    "pipeline": "pipeline",
    "usage": "usage",
    "compare": "compare",
    "version": "version",
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


def dispatch(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the command that the arguments name, and return the exit status."""
    try:
        args = _parse(arguments)
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


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    # Who gives no command wants to know which there are.
    given = list(arguments) or ["--help"]
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        message = f"there is no command {given[0]!r}, see: sluice --help"
        raise ConfigError([Fault(path="", message=message, suggestion=nearest(given[0], COMMANDS))])
    # What one command imports takes a second; a probe calls this every few seconds.
    parser = _parser([given[0]] if given[0] in COMMANDS else list(COMMANDS))
    args, rest = parser.parse_known_args(given)
    if left := take_config(args, rest):
        parser.error(f"there is no argument {' '.join(left)}, see: sluice {given[0]} --help")
    return args


def _complain(message: str, status: int) -> int:
    print(f"sluice: {message}", file=sys.stderr)
    return status


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice",
        description="A Delta Sharing gateway: presigned URLs and directory-scoped credentials for tables.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sluice {metadata.version('sluice-gateway')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        module: ModuleType = import_module(f"gateway.commands.{COMMANDS[name]}")
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(command)
        command.set_defaults(run=module.run)
    return parser
