from __future__ import annotations

import json
from decimal import Decimal

from gateway.commands.comparison.difference import Finding, Weight
from gateway.commands.comparison.report import Report

ORDERS = "table sales.q1.orders"


def report(*findings: Finding, tables: int = 2, unread: int = 0) -> Report:
    return Report(
        old="https://old",
        new="https://new",
        tables=tables,
        unread=unread,
        findings=findings,
        secrets=("0ld-t0k3n", "n3w-t0k3n"),
    )


def test_no_differences_are_one_line():
    assert report().to_text() == "old: https://old\nnew: https://new\n\n2 tables compared, 0 differences"


def test_tables_that_were_not_read_are_not_counted_as_compared():
    made = report(tables=9, unread=7)
    assert made.summary() == "9 tables compared, 7 could not be read from either server, 0 differences"
    assert json.loads(made.to_json())["unread"] == 7


def test_findings_stand_below_their_subject_and_differences_are_counted():
    text = report(
        Finding(subject=ORDERS, what="version", old=5, new=6),
        Finding(subject=ORDERS, what="files", detail="3 (a, b, c) of 9 only in old"),
        Finding(subject=ORDERS, what="file.size", old=1, detail="2 files, e.g. a"),
        Finding(weight=Weight.NOTE, subject=ORDERS, what="file.partitionValues.p", old=None, new=""),
        tables=1,
    ).to_text()
    assert text.splitlines()[3:] == [
        "table sales.q1.orders",
        "  version: 5 in old, 6 in new",
        "  files: 3 (a, b, c) of 9 only in old",
        "  file.size: 1 in old, missing in new (2 files, e.g. a)",
        '  note: file.partitionValues.p: null in old, "" in new',
        "",
        "1 table compared, 3 differences",
    ]


def test_what_only_the_new_server_says_is_summed_up_and_not_counted():
    added = [
        Finding(weight=Weight.ONLY_IN_NEW, subject=f"table s.s.t{number}", what="metaData.size", new=1)
        for number in range(3)
    ]
    lines = report(*added).to_text().splitlines()
    assert "  metaData.size (3 tables)" in lines
    assert lines[-1] == "2 tables compared, 0 differences"


def test_the_json_report_holds_the_same():
    parsed = json.loads(
        report(
            Finding(subject=ORDERS, what="stats.x", old=Decimal("0.5"), new=None),
            Finding(weight=Weight.NOTE, subject=ORDERS, what="query", detail="both refuse"),
            Finding(weight=Weight.ONLY_IN_NEW, subject=ORDERS, what="location", new="s3://b"),
        ).to_json()
    )
    assert parsed == {
        "old": "https://old",
        "new": "https://new",
        "tables": 2,
        "unread": 0,
        "differences": [{"subject": ORDERS, "what": "stats.x", "old": 0.5, "new": None}],
        "notes": [{"subject": ORDERS, "what": "query", "detail": "both refuse"}],
        "onlyInNew": [{"subject": ORDERS, "what": "location", "new": "s3://b"}],
    }


def test_tokens_and_signatures_are_never_printed_whatever_a_server_says():
    made = report(
        Finding(subject="table 0ld-t0k3n.a.b", what="query", detail="401 who is Bearer n3w-t0k3n?"),
        Finding(
            subject=ORDERS,
            what="description",
            old="https://b/x?X-Amz-Signature=abcdef",
            new={"k": ["0ld-t0k3n"]},
        ),
        Finding(subject=ORDERS, what="name", old="-----BEGIN PRIVATE KEY-----\nabc", new="n3w-t0k3n"),
    )
    for text in (made.to_text(), made.to_json()):
        assert "t0k3n" not in text
        assert "abcdef" not in text
    assert "secrets" not in repr(made)
    assert json.loads(made.to_json())["differences"][2]["what"] == "name"


def test_control_characters_do_not_reach_the_terminal():
    text = report(Finding(subject="table \x1b[2J.a.b", what="x\r", detail="\x07bell\u202e")).to_text()
    assert "\x1b" not in text
    assert "\r" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_long_values_are_cut_for_people():
    text = report(Finding(subject=ORDERS, what="x", old="a" * 10_000, new="b")).to_text()
    assert len(text) < 500
