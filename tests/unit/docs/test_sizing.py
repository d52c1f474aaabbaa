"""The sizing guide multiplies what was measured: its figures are those of the results that are kept."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from gateway.adapters.cache.rhythm import rhythm_of
from gateway.domain.window import EPOCH, URL_PARTS, window_at
from tests.problems import assert_none, place
from tests.repository import ROOT

FILE = ROOT / "docs" / "sizing.md"
PAGE = FILE.read_text()
RESULTS = ROOT / "bench" / "results"
MODES = ("all in one", "split")


def read(name: str):
    return json.loads((RESULTS / f"{name}.json").read_text())


def find(pattern: str, text: str) -> re.Match[str]:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return found


def rows(label: str) -> list[str]:
    """Return the rows of tables of the page that begin so."""
    return [line for line in PAGE.splitlines() if line.startswith(f"| {label} |")]


def spread(state: str, mode: str, digits: int) -> str:
    """Return the least and the most that a file took, over all tables and formats."""
    tables = [table for by_size in read("url_query").values() for table in by_size.values()]
    taken = [table[f"{mode}, {state}"]["cpu_us"] for table in tables]
    return f"{min(taken):.{digits}f} to {max(taken):.{digits}f}"


def row_problems(expected: dict[str, str]) -> list[str]:
    """Return a problem for each row, by its label, that does not have its text."""
    problems = []
    for label, text in expected.items():
        if not any(text in line for line in rows(label)[:1]):
            where = place(FILE, r"^\| " + re.escape(label) + r" \|")
            problems.append(f"{where}: expected {text!r} in the row {label!r}")
    return problems


def absent(label: str, expected: str) -> list[str]:
    """Return a problem if the page has no such row, with the rows of that label that it has."""
    lines = enumerate(PAGE.splitlines(), start=1)
    found = [f"docs/sizing.md:{number}: {line}" for number, line in lines if line.startswith(f"| {label} |")]
    return [] if expected in PAGE else ["\n    ".join([f"docs/sizing.md: no row {expected!r}, but", *found])]


def test_queries_cost_what_was_measured_the_worst_included():
    expected = {}
    for label, state, digits in (
        ("a query by URL, warm, a file", "warm in memory", 1),
        ("the same in gzip", "warm in memory, gzip", 1),
        ("the same, cold: with the log and every signature", "cold", 0),
    ):
        one, five = (spread(state, mode, digits) for mode in MODES)
        expected[label] = f" {one} / {five} us "
    assert_none(row_problems(expected))


def test_requests_cost_what_was_measured():
    peers = read("edge_throughput")["peers"]
    expected = {}
    for operation in ("list shares", "metadata"):
        one, five = (peers[mode][operation]["cpu_us_per_request"] / 1000 for mode in MODES)
        expected[operation] = f" {one:.2f} / {five:.2f} ms "
    assert_none(row_problems(expected))


def test_a_credential_costs_what_was_measured():
    warm = (RESULTS / "credential_vending.md").read_text().partition("| cold")[0]
    found = (find(rf"^\| {mode} (?:\|[^|]*){{3}}\| (\d+) ", warm) for mode in MODES)
    one, five = (float(match[1]) / 1000 for match in found)
    assert_none(row_problems({"a credential from the cache": f" {one:.2f} / {five:.2f} ms "}))


HOUR, HALF_DAY = timedelta(hours=1), timedelta(hours=12)


def credential_window(life: timedelta) -> float:
    return rhythm_of(b"", life).width.total_seconds()


def url_window(life: timedelta) -> float:
    window = window_at(EPOCH, life, URL_PARTS, b"")
    return (window.end - window.start).total_seconds()


PAIRS, TABLES, FILES = 1_000_000, 10_000, 20_000_000


# By the row's label, what it says and the window that this follows from.
CALLS = {
    "AWS, `dir`, by a role: 1 h": (f"{PAIRS:,} in 25 minutes: 667 a second", credential_window(HOUR)),
    "AWS, `dir`, by keys of a user: 12 h": (f"{PAIRS:,} in 5 h: 56 a second", credential_window(HALF_DAY)),
    "Google, `dir`": (f"{TABLES:,} in 25 minutes: 7 a second", credential_window(HOUR)),
    "Google, `url` by signBlob: 1 h": (f"{FILES:,} in 15 minutes: 1,333,000 a minute", url_window(HOUR)),
    "Google, `url` by signBlob: 12 h": (f"{FILES:,} in 3 h: 111,000 a minute", url_window(HALF_DAY)),
}


def test_providers_are_called_as_often_as_windows_say():
    problems = []
    for label, (calls, window) in CALLS.items():
        problems += absent(label, f"| {label} | {calls} |")
        count, rate, unit = find(r"^([\d,]+) in .*: ([\d,]+) a (second|minute)$", calls).groups()
        expected = number(count) / window * (60 if unit == "minute" else 1)
        if number(rate) != pytest.approx(expected, rel=0.06):
            problems.append(f"{label}: {rate} a {unit}, but the window makes it {expected:,.0f}")
    assert_none(problems)


def number(text: str) -> float:
    return float(text.replace(",", ""))


# What the page calls a kind of request, and the benchmark; and how many there are a second.
MODEL = {
    "lists": ("list shares", 2_500),
    "metadata": ("metadata", 2_500),
    "credentials": ("credential", 4_000),
    "queries": ("query of 2,000 files, gzip", 1_000),
}
PROCESSES = ("edge", "catalog", "snapshot", "presign", "vending")
# What does not come to a hundredth is what a process does anyhow.
LEAST = 0.02


def cost(kind: str) -> float:
    """Return the milliseconds of a request that the model counts with."""
    table = PAGE.partition("**CPU**")[2]
    a_second, cpu = find(rf"^\| {kind} \| ([\d,]+) \| ([\d.]+) ms \|", table).groups()
    assert number(a_second) == MODEL[kind][1]
    return float(cpu)


def shares(kind: str) -> dict[str, float]:
    taken = read("capacity")["split"][MODEL[kind][0]]
    return {name: taken[name] / sum(taken.values()) for name in PROCESSES}


def test_processes_have_the_shares_that_were_measured():
    problems = []
    for kind in MODEL:
        cells = (f"{share:.0%}" if share > LEAST else "" for share in shares(kind).values())
        label = "queries of 2,000 files in gzip" if kind == "queries" else kind
        expected = re.sub(r" +", " ", f"| {label} | {' | '.join(cells)} |")
        problems += absent(label, expected)
    assert_none(problems)


def test_queries_of_the_model_cost_what_was_measured():
    one, five = (sum(read("capacity")[mode][MODEL["queries"][0]].values()) / 1000 for mode in MODES)
    assert f"| {one:.1f} / {five:.1f} ms |" in PAGE
    assert cost("queries") == round(five, 1)


def test_cores_are_requests_times_what_each_costs():
    cores = {kind: a_second * cost(kind) / 1000 for kind, (_, a_second) in MODEL.items()}
    table = PAGE.partition("**CPU**")[2]
    for kind, count in cores.items():
        assert re.search(rf"^\| {kind} \|.* ms \| {round(count)} \|$", table, re.MULTILINE)
    assert f"| in all | | | {round(sum(cores.values()))} |" in table
    assert f"| at 60% of a core's time | | | **{round(sum(cores.values()) / 0.6)}** |" in table


def test_cores_of_each_process_follow_from_the_shares():
    needed = dict.fromkeys(PROCESSES, 0.0)
    for kind, (_, a_second) in MODEL.items():
        for name, share in shares(kind).items():
            needed[name] += a_second * cost(kind) / 1000 * share / 0.6
    found = find(r"(\d+) cores for edges, (\d+) for .*, (\d+) for .*, (\d+) for .* and (\d+) for", PAGE)
    assert [int(count) for count in found.groups()] == [round(count) for count in needed.values()]
