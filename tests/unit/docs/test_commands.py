"""Commands that the documentation gives, in blocks to be copied, are ones that ``sluice`` takes."""

from __future__ import annotations

import re
import shlex

import pytest

from gateway.commands import _parse
from tests.repository import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# A line of an indented block, with what continues it; variables may stand before the command.
COMMAND = re.compile(r"^ {4,}(?:[A-Z_]+=\S+ )*(sluice (?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
ENDS = {"|", "&&", "&", ">", "2>", "2>>"}
GIVEN = [(page.name, match[1]) for page in PAGES for match in COMMAND.finditer(page.read_text())]


@pytest.mark.parametrize(("page", "command"), GIVEN)
def test_command_is_taken(page, command, capsys):
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    end = next((number for number, word in enumerate(words) if word in ENDS), len(words))
    try:
        arguments = _parse(words[1:end])
    except SystemExit:
        pytest.fail(f"{page}: {capsys.readouterr().err}")
    assert arguments.run


def test_commands_of_the_pages_that_have_many_are_found():
    assert {"README.md", "operations.md", "pipeline.md"} <= {page for page, _ in GIVEN}
