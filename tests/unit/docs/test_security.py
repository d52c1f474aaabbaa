"""The threat model names the test that holds each promise; each of them exists."""

from __future__ import annotations

import re

from tests.problems import assert_none, at
from tests.repository import ROOT

FILE = ROOT / "docs" / "security.md"
PAGE = FILE.read_text()


def test_file_that_is_named_exists():
    named = list(re.finditer(r"`(tests/[\w/]+\.py)`", PAGE))
    assert len(named) > 10
    assert_none(
        f"{at(FILE, match.start())}: there is no file {match[1]}"
        for match in named
        if not (ROOT / match[1]).is_file()
    )


def test_test_that_is_named_exists():
    sources = (file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    named = list(re.finditer(r"`(test_\w+)`", PAGE))
    assert len(named) > 50
    assert_none(
        f"{at(FILE, match.start())}: there is no test {match[1]}"
        for match in named
        if match[1] not in defined
    )


def test_every_invariant_names_a_test():
    rows = PAGE.partition("## What always holds")[2].partition("\n## ")[0].strip().splitlines()[2:]
    assert len(rows) > 20
    assert not [row for row in rows if "`test" not in row.split("|")[2]]
