from __future__ import annotations

import io
import json

import pytest

from gateway.errors import Unavailable
from pipeline.protocol import Replies
from pipeline.runner import SparkGone, serve


class Py4JNetworkError(Exception):
    pass


def request(**changes):
    return json.dumps({"id": "1", "job": "view", "plan": {"n": 1}} | changes).encode() + b"\n"


def replies_to(work, *lines):
    out = io.BytesIO()
    serve(lines, Replies(out), work)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_job_tells_of_its_progress_and_then_its_result():
    def work(asked, progress):
        progress("half", 1, 2)
        return {"n": asked.plan["n"]}

    assert replies_to(work, request()) == [
        {"id": "1", "event": "progress", "message": "half", "done": 1, "total": 2},
        {"id": "1", "event": "result", "result": {"n": 1}},
    ]


def test_requests_are_answered_one_after_the_other_whatever_comes_of_each():
    def work(asked, progress):
        if asked.id == "2":
            raise Unavailable("not now")
        return {}

    replies = replies_to(work, request(), b"nonsense\n", request(id="2"), request(id="3"))
    assert [(reply["id"], reply["event"]) for reply in replies] == [
        ("1", "result"),
        (None, "error"),
        ("2", "error"),
        ("3", "result"),
    ]
    assert replies[2] | {"retry": True, "message": "not now"} == replies[2]


def test_an_error_is_traced_by_what_it_is_and_where_and_not_by_what_it_says(capsys):
    def work(asked, progress):
        raise ValueError(f"cannot sign with {asked.access['fs.s3a.secret.key']}") from KeyError("a row")

    (reply,) = replies_to(work, request(access={"fs.s3a.secret.key": "hidden"}))
    assert reply["message"] == "the job failed: ValueError"
    traced = capsys.readouterr().err
    assert "KeyError" in traced
    assert "ValueError: the job failed: ValueError" in traced
    assert "in work" in traced
    # Lines of the source are ours; the words of an error may be a recipient's.
    for words in ("cannot sign with hidden", "'a row'", "ValueError: cannot"):
        assert words not in traced


def test_the_end_of_spark_is_told_and_ends_the_runner():
    def work(asked, progress):
        raise Py4JNetworkError("Answer from Java side is empty")

    out = io.BytesIO()
    with pytest.raises(SparkGone):
        serve([request(), request(id="2")], Replies(out), work)
    (reply,) = map(json.loads, out.getvalue().splitlines())
    assert (reply["message"], reply["retry"]) == ("Spark ended", True)
