from __future__ import annotations

import json
from datetime import UTC, datetime

from gateway.commands.verification.check import Mark, Row
from gateway.commands.verification.inspection import Inspection
from gateway.commands.verification.report import Report, Verified
from tests.cases import each_case

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def row(mark: Mark, check: str = "read inside", detail: str = "") -> Row:
    return Row(check=check, expected="allowed", seen="allowed", mark=mark, detail=detail)


def verified(*rows: Row, notes=()) -> Verified:
    inspection = Inspection(rows=rows, ground="tables", notes=notes, expires_at=NOON)
    return Verified(name="lake", vendor="aws", prefix="s3://lake", inspection=inspection)


SILENT = Verified(name="disk", vendor="local", prefix="/srv", inspection=None)


@each_case(
    ("storages", "status"),
    [
        ([verified(row(Mark.PROVED))], 0),
        ([verified(row(Mark.PROVED)), SILENT], 0),
        ([verified(row(Mark.PROVED), row(Mark.NOT_PROVED))], 2),
        ([verified(row(Mark.NOT_PROVED), row(Mark.BREACH))], 1),
        ([verified(row(Mark.PROVED)), verified(row(Mark.BREACH))], 1),
        ([SILENT], 2),
        ([verified()], 2),
    ],
)
def test_only_what_was_proved_whole_is_a_success(storages, status):
    assert Report(storages).exit_status == status


def test_table_has_a_line_for_each_check_and_says_what_is_wrong_below():
    storage = verified(
        row(Mark.PROVED), row(Mark.BREACH, "list bucket", "all of it"), notes=["left behind: x"]
    )

    assert Report([storage, SILENT]).to_text() == (
        """\
storage  vendor  check        expected  seen     verdict
-------  ------  -----------  --------  -------  -------
lake     aws     read inside  allowed   allowed  proved
lake     aws     list bucket  allowed   allowed  BREACH

lake: tried on tables; the credential lives until 2030-01-01T12:00:00Z
lake: BREACH: list bucket: all of it
lake: left behind: x

disk: its vendor local issues no credentials, so nothing was tried

1 of 2 proved, 1 BREACHED: share nothing from there until that is put right"""
    )


def test_one_cause_of_many_failures_is_told_once():
    failures = [row(Mark.NOT_PROVED, f"read {name}", "no answer: try again") for name in "abc"]
    other = row(Mark.NOT_PROVED, "list bucket", "403 Forbidden")

    below = Report([verified(*failures, other, row(Mark.BREACH, "write", "no answer: try again"))]).to_text()

    assert below.count("try again") == 2
    assert "lake: not proved: read a, read b, read c: no answer: try again\n" in below
    assert "lake: not proved: list bucket: 403 Forbidden\n" in below


def test_nothing_verified_is_said():
    assert "nothing was verified" in Report([SILENT]).to_text()


def test_machines_get_the_same():
    document = json.loads(
        Report([verified(row(Mark.NOT_PROVED, detail="try again"), notes=["n"]), SILENT]).to_json()
    )

    assert document == {
        "storages": [
            {
                "name": "lake",
                "vendor": "aws",
                "prefix": "s3://lake",
                "issuesCredentials": True,
                "triedOn": "tables",
                "expiresAt": "2030-01-01T12:00:00Z",
                "checks": [
                    {
                        "check": "read inside",
                        "expected": "allowed",
                        "seen": "allowed",
                        "mark": "not proved",
                        "detail": "try again",
                    }
                ],
                "notes": ["n"],
            },
            {"name": "disk", "vendor": "local", "prefix": "/srv", "issuesCredentials": False},
        ],
        "proved": 0,
        "breaches": 0,
        "notProved": 1,
    }
