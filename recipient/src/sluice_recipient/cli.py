"""The command line: ``sluice-recipient``."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

from sluice_recipient.access import DIR
from sluice_recipient.address import parse_address
from sluice_recipient.aws import aws_keys, process_answer, process_command
from sluice_recipient.client import GatewayClient, TableInfo, printable
from sluice_recipient.credential import Credential
from sluice_recipient.errors import NotUsable, RecipientError, Refused
from sluice_recipient.profile import read_profile
from sluice_recipient.table import SharedTable, open_table
from sluice_recipient.transport import Transport, UrllibTransport

_ADDRESS: Final = "PROFILE#SHARE.SCHEMA.TABLE"


def main(
    arguments: Sequence[str] | None = None, *, transport: Transport | None = None, out: TextIO | None = None
) -> int:
    """Run a command; errors go to standard error, with what to do about them."""
    given = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace, Transport, TextIO], None] = given.command
    try:
        command(given, transport or UrllibTransport(), out or sys.stdout)
        (out or sys.stdout).flush()
    except RecipientError as exc:
        sys.stderr.write(f"sluice-recipient: {exc}\n")
        return 1
    except BrokenPipeError:
        # The reader has seen enough, as in `… | head`. What is still to be written goes nowhere, or the
        # interpreter would complain on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice-recipient",
        description="Use tables that are shared with you, with any tool that reads S3.",
        epilog="A PROFILE is the file that the provider of the tables gave you.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    credentials = commands.add_parser(
        "credentials",
        help="print AWS credentials for a table, as a credential_process does",
        description="Print AWS credentials that open the table's directory, as JSON. AWS tools run this by"
        " themselves when a profile names it: see `sluice-recipient aws-config`.",
    )
    credentials.add_argument("address", metavar=_ADDRESS, help="the table")
    credentials.set_defaults(command=_print_credentials)

    tables = commands.add_parser(
        "tables",
        help="list the tables that are shared with you",
        description="List the tables that are shared with you, how each is shared, and where it lies, as far"
        " as that is told. On a terminal the columns are aligned; elsewhere a tab stands between them.",
    )
    tables.add_argument("profile", metavar="PROFILE", type=Path, help="the profile file")
    tables.set_defaults(command=_print_tables)

    config = commands.add_parser(
        "aws-config",
        help="print the lines for ~/.aws/config that open a table",
        description="Print a profile for ~/.aws/config. AWS tools that use it have credentials for the table,"
        " and renew them.",
    )
    config.add_argument("address", metavar=_ADDRESS, help="the table")
    config.add_argument("--name", help="name of the AWS profile (default: the table's name)")
    config.set_defaults(command=_print_config)
    return parser


def _print_credentials(given: argparse.Namespace, transport: Transport, out: TextIO) -> None:
    credential = _credential(given.address, transport)
    out.write(json.dumps(process_answer(credential)) + "\n")


def _credential(address: str, transport: Transport) -> Credential:
    table = open_table(address, transport=transport)
    try:
        return table.credentials()
    except Refused as exc:
        if not _is_by_url_only(table):
            raise
        advice = f'open_table("{printable(address)}", mode="url").to_polars()'
        raise NotUsable(f"{exc}; AWS tools cannot read it, Python can: {advice}") from exc


def _is_by_url_only(table: SharedTable) -> bool:
    try:
        return DIR not in table.info.access_modes
    except RecipientError:
        # What went wrong first is what there is to say.
        return False


def _print_tables(given: argparse.Namespace, transport: Transport, out: TextIO) -> None:
    rows = map(_row, GatewayClient(read_profile(given.profile), transport).tables())
    lines = _aligned(list(rows)) if out.isatty() else map("\t".join, rows)
    out.writelines(f"{line}\n" for line in lines)


def _row(info: TableInfo) -> tuple[str, ...]:
    cells = (str(info.name), ",".join(sorted(info.access_modes)), info.location or "-")
    return tuple(map(printable, cells))


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _print_config(given: argparse.Namespace, transport: Transport, out: TextIO) -> None:
    file, name = parse_address(given.address)
    keys = aws_keys(_credential(given.address, transport))
    section = given.name or re.sub(r"[^\w.-]", "-", str(name))
    command = process_command(f"{file.absolute()}#{name}")
    lines = [f"[profile {section}]", f"credential_process = {command}"]
    lines += [f"region = {keys.region}"] if keys.region else []
    lines += [f"endpoint_url = {keys.endpoint}"] if keys.endpoint else []
    out.write("\n".join(lines) + "\n")
