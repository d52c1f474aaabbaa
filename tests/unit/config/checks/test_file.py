from __future__ import annotations

import pytest

from gateway.config.checks.file import check_file
from gateway.config.report import Report


def test_a_file_that_opens_is_fine(tmp_path):
    report = Report()
    (tmp_path / "a").touch()
    check_file(str(tmp_path / "a"), ("x",), report)
    assert not report.has_faults


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing", "No such file or directory"),
        ("", "Is a directory"),
        ("a\0b", "must be the path of a file"),
    ],
)
def test_another_is_a_fault(tmp_path, file, message):
    report = Report()
    check_file(f"{tmp_path}/{file}", ("x",), report)
    assert message in str(report.faults({})[0])
