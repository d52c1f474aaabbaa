from __future__ import annotations

import json

import pytest

from gateway.domain.job import JobKind
from pipeline.entry import run_file


def never(spark, plan, progress):
    raise AssertionError


def test_a_job_is_given_one_file(capsys):
    assert run_file(JobKind.VIEW, never, []) == 2
    assert capsys.readouterr().err == "usage: view.py PLAN.json\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "plan.json cannot be read: No such file or directory"),
        ("{", "the request is not JSON"),
        (json.dumps({"job": "view"}), "request.plan is missing"),
        (json.dumps({"job": "usage", "plan": {}}), "is the plan of a job of another kind: usage"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_in_one_line(tmp_path, capsys, content, message):
    file = tmp_path / "plan.json"
    if content is not None:
        file.write_text(content)
    assert run_file(JobKind.VIEW, never, [str(file)]) == 1
    told = capsys.readouterr().err
    assert told.startswith("view: ")
    assert told.endswith(f"{message}\n")
