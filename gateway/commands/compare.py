"""``sluice compare``: read the same tables from two servers and report every difference."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, TextIO

import aiohttp

from gateway.commands.comparison.client import SharingClient
from gateway.commands.comparison.content import ContentComparison
from gateway.commands.comparison.profile import Profile, ProfileError, read_profile
from gateway.commands.comparison.report import Report, printable
from gateway.commands.comparison.tables import Data, Servers, TableComparison
from gateway.commands.comparison.walk import NotComparable, Selection, Walk
from gateway.domain.name import TableName, fold

_EPILOG: Final = """\
Only what is shared under both profiles is compared, so use profiles of the same recipient or of
recipients with the same shares. What is compared: the lists of shares, schemas and tables, and of
each table its latest version, protocol, metadata and files with their sizes, statistics, partition
values and deletion vectors; with --data rows also the rows, but for those of tables with deletion
vectors, mapped columns or variants, which are noted. What is not: earlier versions, changes,
predicate hints, pages, and directories (`dir` access).

exit status:
  0  nothing differs
  1  something does
  2  the servers cannot be compared
  3  nothing differs, and some tables could be read from neither server
"""
_UNREAD: Final = 3
# Connecting is quick or fails; a query of a large table may take minutes to its first byte.
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=320)
_TABLE_PARTS: Final = 3


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("old", metavar="OLD_PROFILE", type=Path, help="profile file of the server in use")
    parser.add_argument("new", metavar="NEW_PROFILE", type=Path, help="profile file of the server to come")
    parser.add_argument(
        "--share", metavar="SHARE", action="append", default=[], help="compare this share only; repeatable"
    )
    parser.add_argument(
        "--table",
        metavar="SHARE.SCHEMA.TABLE",
        type=_table_name,
        action="append",
        default=[],
        help="compare this table only; repeatable",
    )
    parser.add_argument(
        "--data",
        type=Data,
        choices=list(Data),
        default=Data.FILES,
        help="rows: read all files and compare their rows; files (the default): compare what is said of "
        "each file; none: compare metadata only",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace, _env: Mapping[str, str]) -> int:
    try:
        now = datetime.now(UTC)
        old, new = read_profile(args.old, now), read_profile(args.new, now)
        selection = Selection(shares=frozenset(map(fold, args.share)), tables=tuple(args.table))
        report = asyncio.run(compare(old, new, selection, args.data, Progress(sys.stderr)))
    except (ProfileError, NotComparable) as exc:
        print(printable(f"sluice compare: {exc}"), file=sys.stderr)
        return 2
    print(report.to_json() if args.json else report.to_text())
    if report.differences:
        return 1
    return _UNREAD if report.unread else 0


async def compare(old: Profile, new: Profile, selection: Selection, data: Data, progress: Progress) -> Report:
    """Compare what two profiles open."""
    headers = {"User-Agent": f"sluice-compare/{version('sluice-gateway')}"}
    async with aiohttp.ClientSession(
        headers=headers, timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        servers = Servers(
            old=SharingClient(session, old, clock=_utcnow), new=SharingClient(session, new, clock=_utcnow)
        )
        content = ContentComparison(servers.old, servers.new, progress.on_file)
        walk = Walk(servers, selection, TableComparison(servers, content, data), progress.on_table)
        result = await walk.run()
    return Report(
        old=old.endpoint,
        new=new.endpoint,
        tables=result.tables,
        unread=result.unread,
        findings=result.findings,
        secrets=(old.bearer_token, new.bearer_token),
    )


class Progress:
    """Says on a stream how far a comparison has come, now and then."""

    def __init__(self, stream: TextIO, *, every: float = 2.0) -> None:
        self._stream = stream
        self._every = every
        self._said_at = time.monotonic()

    def on_table(self, name: TableName, done: int, total: int) -> None:
        self._say(f"{done} of {total} tables compared, last {name}")

    def on_file(self, subject: str, done: int, total: int) -> None:
        self._say(f"{subject}: {done} of {total} files read")

    def _say(self, text: str) -> None:
        now = time.monotonic()
        if now - self._said_at >= self._every:
            self._said_at = now
            print(printable(text), file=self._stream, flush=True)


def _utcnow() -> datetime:
    return datetime.now(UTC)


def _table_name(text: str) -> TableName:
    # A share's name may hold dots, the others may not.
    parts = text.rsplit(".", 2)
    if len(parts) != _TABLE_PARTS or not all(parts):
        raise argparse.ArgumentTypeError(f"a table is SHARE.SCHEMA.TABLE, not {text!r}")
    return TableName(*parts)
