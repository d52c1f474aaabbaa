from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.job import JobKind
from pipeline.protocol import BadRequest, Replies, parse_request
from pipeline.session import SparkSettings
from tests.cases import each_case


def test_a_request_is_read():
    line = json.dumps(
        {
            "id": "7",
            "job": "view",
            "plan": {"query": "SELECT 1"},
            "spark": {"master": "local[2]", "remote": "", "jars": "", "conf": {"spark.x": "y"}},
            "access": {"fs.s3a.bucket.b.secret.key": "hidden"},
        }
    )
    request = parse_request(line)
    assert (request.id, request.job, request.plan) == ("7", JobKind.VIEW, {"query": "SELECT 1"})
    assert request.spark == SparkSettings(master="local[2]", conf={"spark.x": "y"})
    assert request.access == {"fs.s3a.bucket.b.secret.key": "hidden"}


def test_a_file_may_leave_out_what_spark_is_told_elsewhere():
    request = parse_request('{"job": "usage", "plan": {}}')
    assert (request.spark, request.access) == (SparkSettings(), {})


def test_secrets_do_not_print():
    line = '{"job": "view", "plan": {}, "access": {"k": "hidden"}, "spark": {"conf": {"k": "hidden"}}}'
    assert "hidden" not in repr(parse_request(line))


@each_case(
    ("line", "request_id", "message"),
    [
        (b"not JSON", None, "the request is not JSON"),
        (b"\xff\xfe\x00", None, "the request is not JSON"),
        (b"[" * 100_000, None, "the request is not JSON"),
        (b"[]", None, "request is not an object"),
        (b'{"id": "7"}', "7", "request.job is missing"),
        (b'{"id": "7", "job": "tea", "plan": {}}', "7", "request.job is none of usage, index, view"),
        (b'{"id": "7", "job": "view"}', "7", "request.plan is missing"),
        (b'{"id": 7, "job": "view", "plan": {}}', None, "request.id is not a string"),
        (
            b'{"id": "7", "job": "view", "plan": {}, "access": {"a": 1}}',
            "7",
            "request.access.a is not a string",
        ),
    ],
)
def test_what_is_no_request_is_told_with_its_id(line, request_id, message):
    with pytest.raises(BadRequest) as caught:
        parse_request(line)
    assert (caught.value.request_id, caught.value.message) == (request_id, message)


@given(st.binary() | st.text())
def test_whatever_comes_in_is_a_request_or_a_bad_one(line):
    with pytest.raises(BadRequest):
        parse_request(line)


def test_a_reply_is_one_line():
    out = io.BytesIO()
    replies = Replies(out)
    replies.progress("7", "two\nlines", 1, 2)
    replies.result("7", {"rows": 3})
    replies.error(None, "no", retry=True)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"id": "7", "event": "progress", "message": "two\nlines", "done": 1, "total": 2},
        {"id": "7", "event": "result", "result": {"rows": 3}},
        {"id": None, "event": "error", "message": "no", "retry": True},
    ]
