"""Writes docs/performance.md and its pictures out of the results that are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.bars import to_bars
from bench.plot import Chart, in_bytes, in_seconds, to_svg
from tests.repository import ROOT

DOCS = ROOT / "docs"
REPORT = DOCS / "performance.md"
SIGNING, QUERY = DOCS / "performance-signing.svg", DOCS / "performance-query.svg"

_OPENSSL = 4
_FIGURES = {"cpu_us": "processor time a file", "first_ms": "first line"}
_QUERY_AIMS = (
    ("cold", "cpu_us", 15, "us"),
    ("warm in memory", "cpu_us", 4, "us"),
    ("warm in memory", "first_ms", 150, "ms"),
)
_STATES = ("cold", "warm in memory", "warm in Redis", "warm in memory, gzip")
_HEADING = re.compile(r"^#+ ", re.MULTILINE)

_HEAD = """\
# What url access costs

Measured by `make bench`, which also writes this page. Each figure stands beside a peer's that was measured
in the same run, in turns with it: compare the ratios, as the machine is a small and busy one.
"""
_AIMS = """
## Aims, and what became of them

The aims are our own.

| | measured | aim | |
| --- | ---: | ---: | --- |
"""
_SIGNING = f"""
## Signing

![Microseconds of processor time a URL, by signer]({SIGNING.name})

Ours sign a page of names at a time, from hash states that are made once for the page and copied. What they
give is byte for byte what the SDKs give, by property tests. An RSA signature is one whoever makes it: on
Google Cloud Storage HMAC keys cost hundreds of times less.

Batches follow one another for 50 ms of each round, which favours whoever is quick. A single batch between the
others' work, as this was measured before, took our S3 signer 2.0 us a URL with keys and 2.8 to 2.9 with a
session: obstore then takes 4.2 to 4.3 times as long with keys, below the aim of 5, and ours 4.5 to 4.7 times
OpenSSL's with a session, above the aim of 4. A gateway that signs a page now and then is nearer to that.
"""
_QUERY = f"""
## A full query

![A full query of a table on S3, in the delta format, by its number of files]({QUERY.name})

From the request to the last line, of a table on an S3 store. Cold is a gateway's first answer, with the
reading of the log; warm in Redis is one that keeps no signatures itself. Bare aiohttp sends the same bytes
from its memory, which is the least that any server in Python could take. Memory is that of the whole gateway:
the table's log and lines in it grow with the table, and the answer adds nothing to them.
"""
_CACHE = """
## Remembering or signing again

Where signing is a hash, it costs about what finding it again does: such signatures stay in the process
(`cache.urls.redis: auto`). Those of a private key, and those that the provider is asked for, are worth a
round trip.
"""
_CLIENTS = """
## 64 clients at once
"""


def write_performance(results: Path) -> None:
    """Write the page with what there are results of."""
    parts = [_HEAD, _AIMS + "\n".join(_aims(results)) + "\n"]
    for text, name, draw in (
        (_SIGNING, "presigning", _draw_signing),
        (_QUERY, "url_query", _draw_query),
        (_CACHE, "url_cache", None),
        (_CLIENTS, "url_clients", None),
    ):
        table, figures = results / f"{name}.md", results / f"{name}.json"
        if not table.exists():
            continue
        if draw is not None:
            draw(json.loads(figures.read_text()))
        parts += [text, _below(table.read_text())]
    REPORT.write_text("\n".join(parts))


def _aims(results: Path) -> Iterator[str]:
    """Give a row for each aim that there is a figure for."""
    for kind, figures in _read(results / "presigning.json").items():
        own = figures["own"]
        for peer, least in (("boto3", 60), ("obstore.sign", 5)):
            if peer in figures:
                ratio = figures[peer] / own
                yield _aim(f"signing, {kind}: {peer} takes", ratio, "times as long", ratio >= least, least)
        if "OpenSSL alone" in figures:
            ratio = own / figures["OpenSSL alone"]
            yield _aim(f"signing, {kind}: of OpenSSL alone", ratio, "times", ratio <= _OPENSSL, _OPENSSL)
    for response_format, tables in _read(results / "url_query.json").items():
        for size, servers in tables.items():
            what = f"{int(size):,} files, {response_format}"
            for state, figure, most, unit in _QUERY_AIMS:
                found = servers[f"all in one, {state}"][figure]
                yield _aim(f"{what}, {state}: {_FIGURES[figure]}", found, unit, found <= most, most)


def _aim(what: str, found: float, unit: str, is_met: bool, aim: float) -> str:  # noqa: FBT001 -- a column
    return f"| {what} | {found:,.1f} {unit} | {aim:g} | {'met' if is_met else '**missed**'} |"


def _read(file: Path) -> Mapping[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}


def _below(text: str) -> str:
    """Return a page of results without its title, its headings one level lower."""
    _, _, rest = text.partition("\n\n")
    return _HEADING.sub(lambda found: f"#{found.group()}", rest)


def _draw_signing(figures: Mapping[str, Mapping[str, float]]) -> None:
    SIGNING.write_text(to_bars(figures, own="own", unit="us"))


def _draw_query(figures: Mapping[str, Any]) -> None:
    QUERY.write_text(to_svg(list(_query_charts(figures["delta"]))))


def _query_charts(tables: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Iterator[Chart]:
    for mode in ("all in one", "split"):
        yield Chart(
            title=f"Processor time, {mode}",
            unit=in_seconds,
            series={
                state: {
                    int(size): figures[f"{mode}, {state}"]["cpu_us"] * int(size) / 1e6
                    for size, figures in tables.items()
                }
                for state in _STATES
            },
        )
    yield Chart(
        title="Until the first line, all in one",
        unit=in_seconds,
        series={
            state: {
                int(size): figures[f"all in one, {state}"]["first_ms"] / 1e3
                for size, figures in tables.items()
            }
            for state in _STATES
        },
    )
    yield Chart(
        title="Peak memory",
        unit=in_bytes,
        series={
            mode: {int(size): figures[f"{mode}, cold"]["peak_mb"] * 1e6 for size, figures in tables.items()}
            for mode in ("all in one", "split")
        },
    )
