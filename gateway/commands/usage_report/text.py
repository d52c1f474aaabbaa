"""Reports for a terminal: columns that line up, numbers that can be compared at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from gateway.commands.text_table import text_table
from gateway.commands.usage_report.access import AccessQuestion
from gateway.commands.usage_report.figures import Figures

_BAR: Final = 24
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024

Rows = Sequence[Mapping[str, Any]]
# A title, how a value is written, and whether it is a number.
_Column = tuple[str, Callable[[Any], str], bool]


def size(value: float) -> str:
    """Return bytes in the unit that leaves few digits."""
    unit = 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:,.0f} {_UNITS[unit]}" if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def number(value: float) -> str:
    return f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"


def moment(value: datetime | None) -> str:
    return "-" if value is None else f"{value:%Y-%m-%d %H:%M}"


def day_text(value: date) -> str:
    return value.isoformat()


_AMOUNTS: Final[Mapping[str, _Column]] = {
    "requests": ("requests", number, True),
    "files": ("files", number, True),
    "bytes_granted": ("granted", size, True),
    "credentials": ("credentials", number, True),
    "denials": ("denials", number, True),
    "failures": ("failures", number, True),
}
_TABLES: Final[Mapping[str, _Column]] = {
    "name": ("table", str, False),
    **_AMOUNTS,
    "recipients": ("recipients", number, True),
    "worst_daily_p99_ms": ("worst daily p99", milliseconds, True),
    "last_at": ("last request", moment, False),
}
_RECIPIENTS: Final[Mapping[str, _Column]] = {
    "name": ("recipient", str, False),
    **_AMOUNTS,
    "tables": ("tables", number, True),
    "worst_daily_p99_ms": ("worst daily p99", milliseconds, True),
    "last_at": ("last request", moment, False),
}
_ANOMALIES: Final[Mapping[str, _Column]] = {
    "day": ("day", day_text, False),
    "rule": ("rule", str, False),
    "measured": ("measured", number, True),
    "threshold": ("threshold", number, True),
    "explanation": ("what happened", str, False),
}
_ACCESS: Final[Mapping[str, _Column]] = {
    "recipient": ("recipient", str, False),
    "mode": ("mode", str, False),
    "opens": ("opens", str, False),
    "location": ("location", str, False),
    "valid_from": ("from (UTC)", moment, False),
    "valid_until": ("until (UTC)", moment, False),
    "credential_id": ("credential", lambda value: value or "-", False),
    "remote": ("asked from", str, False),
}


def overview(figures: Figures, top: int) -> str:
    parts = [
        _heading(figures),
        _totals(figures.totals),
        *("", "Top tables, by what was granted", tables(figures, top)),
        *("", "Top recipients", recipients(figures, top)),
        *("", "Anomalies", anomalies(figures, top)),
    ]
    return "\n".join(parts)


def tables(figures: Figures, top: int) -> str:
    return _cut(figures.tables, top, _TABLES, "nothing of any table was given")


def recipients(figures: Figures, top: int) -> str:
    return _cut(figures.recipients, top, _RECIPIENTS, "nobody asked for anything")


def anomalies(figures: Figures, top: int) -> str:
    return _cut(figures.anomalies, top, _ANOMALIES, "nothing out of the ordinary")


def timeline(figures: Figures, _: int) -> str:
    """Return a day's hours, with a bar for requests whose full length is the busiest hour's."""
    most = max((row["requests"] for row in figures.hours), default=0)
    columns: Mapping[str, _Column] = {
        "hour": ("hour (UTC)", lambda at: f"{at:%H:%M}", False),
        "requests": ("requests", number, True),
        "bar": ("", str, False),
        **{name: column for name, column in _AMOUNTS.items() if name != "requests"},
    }
    rows = [{**row, "bar": _bar(row["requests"], most)} for row in figures.hours]
    return "\n".join((f"{figures.day:%A, %Y-%m-%d}, UTC", *_table(rows, columns)))


def access(question: AccessQuestion, rows: Rows) -> str:
    asked = f"{question.place} at {question.at:%Y-%m-%d %H:%M:%S} UTC"
    if not rows:
        return f"nobody was given access to {asked}, by what has landed so far"
    head = f"{len(rows)} grants in force opened {asked}, or a directory that it lies in:"
    note = "files: URLs of those files of the table that an answer named, which need not be all"
    return "\n".join((head, "", *_table(rows, _ACCESS), "", note))


def _heading(figures: Figures) -> str:
    return f"Usage from {figures.period.since} to {figures.period.until} (UTC)"


def _totals(totals: Mapping[str, Any]) -> str:
    facts = (
        f"{number(totals['requests'])} requests of {number(totals['recipients'])} recipients",
        f"{number(totals['tables'])} tables opened",
        f"{size(totals['bytes_granted'])} in {number(totals['files'])} files",
        f"{number(totals['credentials'])} credentials",
        f"{number(totals['denials'])} denials, {number(totals['failures'])} failures",
    )
    return " · ".join(facts)


def _cut(rows: Rows, top: int, columns: Mapping[str, _Column], nothing: str) -> str:
    if not rows:
        return f"  {nothing}"
    rest = len(rows) - top
    more = (f"… and {rest:,} more: --top {len(rows)} shows all",) if rest > 0 else ()
    return "\n".join((*_table(rows[:top], columns), *more))


def _table(rows: Rows, columns: Mapping[str, _Column]) -> Iterator[str]:
    titles = [title for title, _, _ in columns.values()]
    cells = [[write(row[name]) for name, (_, write, _) in columns.items()] for row in rows]
    numbers = [place for place, (_, _, is_number) in enumerate(columns.values()) if is_number]
    return text_table(titles, cells, numbers)


def _bar(value: int, most: int) -> str:
    eighths = round(_BAR * 8 * value / most) if most else 0
    full, rest = divmod(max(eighths, 1 if value else 0), 8)
    return "█" * full + (_BLOCKS[rest] if rest else "")
