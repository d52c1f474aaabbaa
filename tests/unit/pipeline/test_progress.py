from __future__ import annotations

import io

from pipeline.progress import TerminalProgress, ignore, summary


def test_a_line_has_the_time_the_part_that_is_done_and_what_is_being_done():
    out, times = io.StringIO(), iter([100.0, 100.0, 112.5])
    progress = TerminalProgress(out, now=lambda: next(times))
    progress("looking", 0, 4)
    progress("writing", 1, 4)
    assert out.getvalue().splitlines() == [
        "    0.0 s  [....................]  looking",
        "   12.5 s  [#####...............]  writing",
    ]


def test_a_step_of_unknown_length_has_no_bar():
    out = io.StringIO()
    TerminalProgress(out, now=lambda: 0)("starting", 0, 0)
    assert out.getvalue() == "    0.0 s                          starting\n"


def test_more_than_all_is_all():
    out = io.StringIO()
    TerminalProgress(out, now=lambda: 0)("writing", 9, 4)
    assert "[####################]" in out.getvalue()


def test_a_result_is_a_table_of_names_and_values():
    result = {
        "kind": "full",
        "rows": 1234567,
        "sources": {"a.b.c": {"version": 3}},
        "deleted": [],
        "is_new": True,
    }
    assert summary(result).splitlines() == [
        "kind                   full",
        "rows                   1,234,567",
        "sources.a.b.c.version  3",
        "deleted                -",
        "is_new                 yes",
    ]


def test_an_empty_result_is_an_empty_table():
    assert summary({}) == ""


def test_progress_can_be_ignored():
    ignore("writing", 1, 2)
