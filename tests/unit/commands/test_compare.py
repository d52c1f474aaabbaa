from __future__ import annotations

import argparse
import io

import pytest

from gateway.commands import compare
from gateway.commands.comparison.tables import Data
from gateway.domain.name import TableName


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    compare.configure(parser)
    return parser.parse_args(arguments)


def test_two_profiles_are_enough():
    args = parse("old.share", "new.share")
    assert (args.old.name, args.new.name, args.data, args.json) == (
        "old.share",
        "new.share",
        Data.FILES,
        False,
    )
    assert (args.share, args.table) == ([], [])


def test_a_share_with_dots_can_be_part_of_a_tables_name():
    assert parse("a", "b", "--table", "my.own.share.q1.orders").table == [
        TableName("my.own.share", "q1", "orders")
    ]


@pytest.mark.parametrize("arguments", [["a"], ["a", "b", "--data", "all"], ["a", "b", "--table", "x.y"]])
def test_wrong_usage_ends_with_status_two(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*arguments)
    assert caught.value.code == 2


def test_profiles_that_cannot_be_read_end_with_status_two(capsys):
    assert compare.run(parse("/nowhere/a", "/nowhere/b"), {}) == 2
    assert "cannot read the profile /nowhere/a" in capsys.readouterr().err


def test_progress_is_told_now_and_then():
    stream = io.StringIO()
    progress = compare.Progress(stream, every=0.0)
    progress.on_table(TableName("s", "s", "t\x1b"), 1, 2)
    progress.on_file("table s.s.t", 3, 4)
    assert stream.getvalue() == (
        "1 of 2 tables compared, last s.s.t\\u001b\ntable s.s.t: 3 of 4 files read\n"
    )
    rare = compare.Progress(stream, every=3600.0)
    rare.on_file("again", 1, 1)
    assert "again" not in stream.getvalue()
