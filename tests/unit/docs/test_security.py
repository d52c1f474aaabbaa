"""The threat model names the test that holds each promise; each of them exists."""

from __future__ import annotations

import re

import pytest

from tests.repository import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
FILES = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(test_\w+)`", PAGE)))


@pytest.fixture(scope="module")
def defined():
    sources = (file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    return {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}


@pytest.mark.parametrize("name", FILES)
def test_file_that_is_named_exists(name):
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("name", TESTS)
def test_test_that_is_named_exists(name, defined):
    assert name in defined


def test_every_invariant_names_a_test():
    rows = PAGE.partition("## What always holds")[2].partition("\n## ")[0].strip().splitlines()[2:]
    assert len(rows) > 20
    assert not [row for row in rows if "`test" not in row.split("|")[2]]
