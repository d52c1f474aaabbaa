from __future__ import annotations

import ast
from pathlib import Path

from gateway.commands.greeting import Greeting

GREETING = Greeting(
    base_url="http://127.0.0.1:8080/delta-sharing",
    profile=Path("/home/it's me/.sluice/sample.share"),
    metrics="127.0.0.1:8081",
)


def test_without_s3_nothing_is_said_of_it():
    text = GREETING.to_text(with_s3=False)
    assert "S3" not in text
    assert "temporary-table-credentials" not in text


def test_last_line_says_how_to_stop_it():
    for with_s3 in (True, False):
        assert GREETING.to_text(with_s3=with_s3).endswith("\n\nCtrl-C stops it.")


def test_python_stands_at_the_lines_beginnings_and_can_be_pasted():
    text = GREETING.to_text(with_s3=True)
    snippets = [part for part in text.split("\n\n") if part.startswith("import ")]
    assert len(snippets) == 3
    for snippet in snippets:
        ast.parse(snippet)


def test_table_on_s3_is_read_by_what_was_imported_before():
    text = GREETING.to_text(with_s3=True)
    (snippet,) = [part for part in text.split("\n\n") if part.startswith("on_s3 = ")]
    ast.parse(snippet)
    assert "#sample.lake.orders" in snippet


def test_odd_path_is_quoted_for_the_shell():
    text = GREETING.to_text(with_s3=True)
    assert """curl -X POST -H '@/home/it'"'"'s me/.sluice/sample.header' http""" in text
