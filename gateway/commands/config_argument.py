"""The configuration as an argument: ``--config FILE``, or just the file's name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PARSER: Final = "config_parser"


def add_config_argument(parser: argparse.ArgumentParser, help_: str, *, required: bool = True) -> None:
    """Let a command take a configuration; ``args.config`` is its path, or None when it need not be given."""
    parser.add_argument("--config", metavar="FILE", type=Path, help=help_)
    # Not a positional argument: before options argparse would take an optional one for left out.
    parser.set_defaults(**{_PARSER: parser, "config_required": required})


def take_config(args: argparse.Namespace, rest: Sequence[str]) -> Sequence[str]:
    """Take what no other argument has taken for the configuration, and return what is left over."""
    parser: argparse.ArgumentParser | None = getattr(args, _PARSER, None)
    if parser is None:
        return rest
    if len(rest) == 1 and not rest[0].startswith("-") and args.config is None:
        args.config, rest = Path(rest[0]), ()
    if args.config is None and args.config_required and not rest:
        parser.error("the configuration is missing: give --config FILE")
    return rest
