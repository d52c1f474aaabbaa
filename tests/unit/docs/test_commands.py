"""Commands that the documentation gives, in blocks to be copied, are ones that ``sluice`` takes."""

from __future__ import annotations

import re
import shlex

import pytest

from gateway.commands import parse_arguments
from gateway.config.faults import ConfigError
from tests.problems import assert_none, at
from tests.repository import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# A line of an indented block, with what continues it; variables may stand before the command.
COMMAND = re.compile(r"^ {4,}(?:[A-Z_]+=\S+ )*(sluice (?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
ENDS = {"|", "&&", "&", ">", "2>", "2>>"}
GIVEN = {page: found for page in PAGES if (found := list(COMMAND.finditer(page.read_text())))}


@pytest.mark.parametrize("page", GIVEN, ids=lambda page: page.name)
def test_commands_of_a_page_are_accepted_by_the_parser(page, capsys):
    problems = []
    for match in GIVEN[page]:
        words = shlex.split(match[1].replace("\\\n", " "), comments=True)
        end = next((number for number, word in enumerate(words) if word in ENDS), len(words))
        try:
            reason = "" if parse_arguments(words[1:end]).run else "the parser gives no function to run"
        except SystemExit:
            reason = f"the parser exits: {capsys.readouterr().err.strip()}"
        except ConfigError as exc:
            reason = f"the parser raises: {exc}"
        if reason:
            problems.append(f"{at(page, match.start(1))}: {match[1]}\n    {reason}")
    assert_none(problems)


def test_commands_of_the_pages_that_have_many_are_found():
    assert {"README.md", "operations.md", "pipeline.md"} <= {page.name for page in GIVEN}
