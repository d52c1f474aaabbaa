"""A usage report as one page that needs nothing else: no network, no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final

from gateway.commands.text_table import printable
from gateway.commands.usage_report import plot
from gateway.commands.usage_report.figures import Figures
from gateway.commands.usage_report.style import STYLE
from gateway.commands.usage_report.text import milliseconds, moment, number, size

_TOP: Final = 12
_MOST_ANOMALIES: Final = 60
_RULES: Final = {
    "first_use": "first use",
    "unusual_volume": "unusual volume",
    "many_denials": "many denials",
    "many_networks": "many networks",
}

Row = Mapping[str, Any]


def to_page(figures: Figures, made_at: datetime) -> str:
    """Return the page. Names are what callers made up: all of it is escaped."""
    since, until = figures.period.since, figures.period.until
    body = (
        f"<h1>Usage of shared tables</h1><p class='lead'>{since} to {until}, days in UTC · made "
        f"{made_at:%Y-%m-%d %H:%M} UTC from what has landed by then</p>",
        _tiles(figures.totals),
        _requests_by_day(figures),
        _bytes_by_day(figures),
        _timeline(figures),
        _ranking("Top tables", "table", figures.tables, "recipients"),
        _ranking("Top recipients", "recipient", figures.recipients, "tables"),
        _anomalies(figures.anomalies),
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>Usage {since} to {until}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _tiles(totals: Row) -> str:
    tiles = (
        (number(totals["requests"]), "requests"),
        (size(totals["bytes_granted"]), f"granted, in {number(totals['files'])} files"),
        (number(totals["credentials"]), "credentials"),
        (number(totals["denials"]), f"denials, and {number(totals['failures'])} failures"),
        (number(totals["recipients"]), "recipients"),
        (number(totals["tables"]), "tables opened"),
    )
    items = "".join(f"<li><b>{escape(value)}</b><span>{escape(words)}</span></li>" for value, words in tiles)
    return f"<ul class='tiles'>{items}</ul>"


def _requests_by_day(figures: Figures) -> str:
    bars = [
        plot.Bar(
            label=f"{row['day']:%b %d}",
            value=row["requests"],
            part=row["denials"],
            words=f"{row['day']}: {number(row['requests'])} requests, {number(row['denials'])} denied",
        )
        for row in figures.days
    ]
    drawn = plot.columns(bars, "Requests a day, and how many of them were denied", number)
    return _section("Requests a day", drawn + _KEY + _days_table(figures.days))


def _bytes_by_day(figures: Figures) -> str:
    bars = [
        plot.Bar(
            label=f"{row['day']:%b %d}",
            value=row["bytes_granted"],
            words=f"{row['day']}: {size(row['bytes_granted'])} in {number(row['files'])} files",
        )
        for row in figures.days
    ]
    note = (
        "<p class='note'>The size of all files whose URLs were handed out, whether they were fetched or not. "
        "A credential for a directory is not in it: nobody can tell what it is used for.</p>"
    )
    return _section(
        "Granted by URLs a day", plot.columns(bars, "Bytes granted by URLs a day", size, step_of=1024) + note
    )


def _timeline(figures: Figures) -> str:
    bars = [
        plot.Bar(
            label=f"{row['hour']:%H}",
            value=row["requests"],
            part=row["denials"],
            words=f"{row['hour']:%H:%M}: {number(row['requests'])} requests, "
            f"{number(row['denials'])} denied, {size(row['bytes_granted'])}",
        )
        for row in figures.hours
    ]
    title = f"{figures.day:%A, %d %B %Y}, by the hour (UTC)"
    return _section(title, plot.columns(bars, f"Requests by the hour on {figures.day}", number) + _KEY)


def _ranking(title: str, kind: str, rows: Sequence[Row], others: str) -> str:
    if not rows:
        return _section(title, "<p class='note'>None in this time.</p>")
    top = rows[:_TOP]
    by_size = any(row["bytes_granted"] for row in top)
    measure, write = ("bytes_granted", size) if by_size else ("requests", number)
    bars = [
        plot.Bar(
            label=printable(row["name"]),
            value=row[measure],
            words=f"{printable(row['name'])}: {number(row['requests'])} requests, "
            f"{size(row['bytes_granted'])}",
        )
        for row in top
    ]
    words = "what was granted by URLs" if by_size else "requests"
    rest = f" The first {_TOP} of {len(rows)}." if len(rows) > _TOP else ""
    table = _table(
        (
            kind,
            "requests",
            "files",
            "granted",
            "credentials",
            "denials",
            "failures",
            others,
            "worst daily p99",
            "last request",
        ),
        [
            (
                printable(row["name"]),
                *(number(row[name]) for name in ("requests", "files")),
                size(row["bytes_granted"]),
                *(number(row[name]) for name in ("credentials", "denials", "failures", others)),
                milliseconds(row["worst_daily_p99_ms"]),
                moment(row["last_at"]),
            )
            for row in top
        ],
    )
    drawn = plot.rows(bars, f"{title} by {words}", write)
    return _section(title, f"{drawn}<p class='note'>By {words}.{rest}</p>{_details(table)}")


def _anomalies(rows: Sequence[Row]) -> str:
    if not rows:
        return _section("Anomalies", "<p class='note'>Nothing out of the ordinary in this time.</p>")
    lines = "".join(map(_anomaly, rows[:_MOST_ANOMALIES]))
    head = (
        "<tr><th>day</th><th>rule</th><th>what happened</th>"
        "<th class='n'>measured</th><th class='n'>threshold</th></tr>"
    )
    rest = len(rows) - _MOST_ANOMALIES
    more = f"<p class='note'>And {rest:,} more, in the table anomalies.</p>" if rest > 0 else ""
    table = f"<div class='scroll'><table><thead>{head}</thead><tbody>{lines}</tbody></table></div>"
    return _section("Anomalies", table + more)


def _anomaly(row: Row) -> str:
    rule = escape(_RULES.get(row["rule"]) or row["rule"])
    cells = (
        f"<td class='n'>{row['day']}</td>",
        f"<td><span class='rule'>{rule}</span></td>",
        f"<td>{escape(printable(row['explanation']))}</td>",
        *(f"<td class='n'>{_amount(row, name)}</td>" for name in ("measured", "threshold")),
    )
    return f"<tr>{''.join(cells)}</tr>"


def _amount(row: Row, name: str) -> str:
    return size(row[name]) if row["measure"] == "bytes_granted" else number(row[name])


def _days_table(days: Sequence[Row]) -> str:
    rows = [
        (
            row["day"].isoformat(),
            *(number(row[name]) for name in ("requests", "files")),
            size(row["bytes_granted"]),
            *(number(row[name]) for name in ("credentials", "denials", "failures")),
        )
        for row in days
    ]
    titles = ("day", "requests", "files", "granted", "credentials", "denials", "failures")
    return _details(_table(titles, rows))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        first, *others = cells
        written = "".join(f"<{tag} class='n'>{escape(cell)}</{tag}>" for cell in others)
        return f"<tr><{tag}>{escape(first)}</{tag}>{written}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return (
        f"<div class='scroll'><table><thead>{line(titles, 'th')}</thead><tbody>{body}</tbody></table></div>"
    )


def _details(table: str) -> str:
    return f"<details><summary>The numbers</summary>{table}</details>"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


_KEY: Final = (
    "<p class='note'><span class='key a'></span>requests<span class='key b'></span>of them denied</p>"
)
