from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unsupported
from gateway.services.snapshot.log.commit_time import read_commit_time
from tests.cases import each_case


@each_case(
    "content",
    [
        b'{"commitInfo":{"inCommitTimestamp":5}}',
        b'{"commitInfo":{"timestamp":9,"inCommitTimestamp":5,"operation":"WRITE"}}\n{"add":{"path":"a"}}\n',
        b'\n{ "commitInfo" : {"inCommitTimestamp" : 5} }\r\n',
        b'{"add":{"path":"a"}}\n{"commitInfo":{"inCommitTimestamp":5}}\n',
    ],
)
def test_a_commit_says_when_it_was_made(content):
    assert read_commit_time("c.json", content) == 5


@each_case(
    "content",
    [
        b"",
        b'{"add":{"path":"a"}}',
        b'{"commitInfo":{"timestamp":9}}',
        b'{"commitInfo":{"inCommitTimestamp":"5"}}',
        b'{"commitInfo":{"inCommitTimestamp":5.5}}',
        b'{"commitInfo":{"inCommitTimestamp":true}}',
        b'{"commitInfo":{"inCommitTimestamp":-1}}',
        b'{"commitInfo":{"inCommitTimestamp":1e300}}',
        b'{"commitInfo":{"inCommitTimestamp":9223372036854775807}}',
        b'{"commitInfo":null}',
        b'{"commitInfo":{"inCommit',
        b'["commitInfo"]',
        b'{"x":"commitInfo"}',
        b'{"commitInfo":' + b"[" * 100_000,
        b'{"commitInfo":{"operation":"\xff"}}',
    ],
)
def test_a_commit_that_does_not_say_it_is_named(content):
    with pytest.raises(Unsupported, match=r"the table's log is damaged: c\.json "):
        read_commit_time("c.json", content)


@given(st.binary(max_size=100))
def test_any_bytes_say_it_or_are_a_clear_error(content):
    with pytest.raises(Unsupported):
        read_commit_time("c.json", b'"commitInfo"' + content)
