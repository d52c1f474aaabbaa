"""``sluice usage``: who was given what, from the tables of usage."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gateway.bootstrap.landing import open_place
from gateway.commands.config_argument import add_config_argument
from gateway.commands.safe_json import to_safe_json
from gateway.commands.usage_report import text
from gateway.commands.usage_report.access import AccessQuestion, who_could_read
from gateway.commands.usage_report.figures import Figures, Period, gather_figures
from gateway.commands.usage_report.page import to_page
from gateway.commands.usage_report.tables import UsageReader
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument

_DAYS: Final = timedelta(days=29)
_ACCESS: Final = "who-could-read"
_REPORTS: Final[Mapping[str, Callable[[Figures, int], str]]] = {
    "overview": text.overview,
    "tables": text.tables,
    "recipients": text.recipients,
    "timeline": text.timeline,
    "anomalies": text.anomalies,
}
_SECTIONS: Final = {
    "overview": ("totals", "tables", "recipients", "days", "anomalies"),
    "tables": ("tables",),
    "recipients": ("recipients",),
    "timeline": ("day", "hours"),
    "anomalies": ("anomalies",),
}
_EPILOG: Final = f"""\
reports:
  {", ".join(_REPORTS)}
  {_ACCESS} LOCATION --at TIME    the grants that opened a place at a moment

The tables are those at usage.location; `sluice pipeline usage` brings them up to date. Days are UTC's.

exit status:
  0  the report was written
  1  the tables cannot be read
  2  the configuration names no tables, or wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("report", nargs="?", default="overview", metavar="REPORT", help="see below")
    parser.add_argument("place", nargs="?", metavar="LOCATION", help=f"with {_ACCESS}: a file or directory")
    add_config_argument(parser, "the configuration", required=False)
    parser.add_argument("--since", metavar="DAY", type=_day, help="the first day (default: 30 days)")
    parser.add_argument("--until", metavar="DAY", type=_day, help="the last day (default: today)")
    parser.add_argument("--day", metavar="DAY", type=_day, help="the timeline's day (default: the last one)")
    parser.add_argument("--at", metavar="TIME", type=_time, help=f"with {_ACCESS}: when (default: now)")
    parser.add_argument("--top", metavar="N", type=_count, default=10, help="so many lines (default: 10)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page with plots instead")


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    _take_words(args)
    config = load(args.config, env).config
    if not config.usage.location:
        message = "there are no tables: set usage.location, and see docs/pipeline.md"
        raise ConfigError([Fault(path="usage.location", message=message)])
    now = datetime.now(UTC)
    print(asyncio.run(_report(args, config, now)))
    return 0


def _take_words(args: argparse.Namespace) -> None:
    """Sort out which of the words are a report, a place and a configuration."""
    words = [word for word in (args.report, args.place) if word]
    if words and words[0] not in (*_REPORTS, _ACCESS):
        words.insert(0, "overview")
    wants_place = words[0] == _ACCESS
    if len(words) > 1 and not wants_place and args.config is None:
        args.config = Path(words.pop(1))
    if len(words) > 1 + wants_place:
        raise InvalidArgument(f"there is no report {words[1]!r}, see: sluice usage --help")
    args.report, args.place = words[0], words[1] if wants_place and len(words) > 1 else None
    if wants_place and args.place is None:
        raise InvalidArgument(f"`sluice usage {_ACCESS}` takes a location")
    if args.config is None:
        raise InvalidArgument("the configuration is missing: give --config FILE")


async def _report(args: argparse.Namespace, config: Config, now: datetime) -> str:
    place = config.usage.location
    async with open_place(config, place, key="usage.location") as store:
        reader = UsageReader(store=store, location=parse_location(place))
        if args.report == _ACCESS:
            return await _access_report(reader, args, now)
        until = args.until or now.date()
        period = Period(since=args.since or until - _DAYS, until=until)
        if period.since > period.until:
            raise InvalidArgument(f"--since {period.since} is after --until {period.until}")
        figures = await gather_figures(reader, period, args.day)
    return _written(args, figures, now)


async def _access_report(reader: UsageReader, args: argparse.Namespace, now: datetime) -> str:
    question = AccessQuestion(place=_location(args.place), at=args.at or now)
    rows = await who_could_read(reader, question)
    if args.json:
        return to_safe_json({"place": str(question.place), "at": question.at, "grants": list(rows)}, _plain)
    return text.access(question, rows)


def _written(args: argparse.Namespace, figures: Figures, now: datetime) -> str:
    if args.html is not None:
        args.html.write_text(to_page(figures, now), encoding="utf-8")
        return f"wrote {args.html}"
    if args.json:
        values = asdict(figures)
        sections = {name: values[name] for name in _SECTIONS[args.report]}
        period = {"since": figures.period.since, "until": figures.period.until}
        return to_safe_json({**period, **sections}, _plain)
    return _REPORTS[args.report](figures, args.top)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def _location(given: str) -> Location:
    try:
        return parse_location(given)
    except InvalidArgument as exc:
        raise InvalidArgument(f"{_ACCESS} takes a location: {exc.message}") from exc


def _day(given: str) -> date:
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a day is YYYY-MM-DD, not {given!r}") from None


def _time(given: str) -> datetime:
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a time is YYYY-MM-DDTHH:MM, not {given!r}") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def _count(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"a number of lines is 1 or more, not {given!r}")
    return int(given)
