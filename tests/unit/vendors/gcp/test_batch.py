from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import each_case
from tests.doubles.gcp_sign_blob import nested_answer, split_batch
from tests.hypothesis_profiles import examples
from tests.unit.vendors.gcp.iam import batch_of
from vendors.gcp.batch import batch_request, read_batch
from vendors.http import Reply

PATH = "/v1/projects/-/serviceAccounts/a@b:signBlob"


def part(number: int, status: int = 200, **fields: object) -> str:
    return nested_answer(f"call-{number}", status, fields or {"number": number}, {})


def test_request_has_a_part_for_each_body_and_the_headers_for_all():
    request = batch_request(
        "https://iam.example/batch", {"Authorization": "Bearer t"}, PATH, [b"{}", b'{"a":1}']
    )

    calls = split_batch(request.headers["Content-Type"], request.body)
    assert calls == {"call-0": ("a@b", b"{}"), "call-1": ("a@b", b'{"a":1}')}
    assert (request.method, request.url) == ("POST", "https://iam.example/batch")
    assert request.headers["Authorization"] == "Bearer t"


@settings(max_examples=examples(0.3))
@given(st.integers(1, 100), st.randoms(use_true_random=False))
def test_answers_are_found_by_their_names_whatever_their_order(count: int, shuffle: random.Random):
    numbers = list(range(count))
    shuffle.shuffle(numbers)

    replies = read_batch(batch_of([part(number) for number in numbers]), count)

    assert [reply.fields()["number"] for reply in replies] == list(range(count))


def test_each_answer_has_a_status_and_headers_of_its_own():
    throttled = nested_answer("call-1", 429, {"error": {}}, {"Retry-After": "7"})

    first, second = read_batch(batch_of([throttled, part(0)]), 2)

    assert (first.status, second.status) == (200, 429)
    assert second.headers["retry-after"] == "7"
    assert second.is_throttling


def test_bare_line_feeds_and_other_spellings_of_the_head_are_read():
    body = (
        b"--b\ncontent-type: application/http\ncontent-id: response-call-0\n\n"
        b'HTTP/2 200\ncontent-type: application/json\n\n{"a": 1}\n--b--\n'
    )
    for content_type in ('Multipart/Mixed; boundary="b"', "multipart/mixed;boundary=b ; charset=UTF-8"):
        (reply,) = read_batch(Reply(status=200, headers={"content-type": content_type}, body=body), 1)

        assert (reply.status, reply.fields()) == (200, {"a": 1})


@each_case(
    "reply",
    [
        batch_of([]),
        batch_of([part(0)]),
        batch_of([part(0), part(0)]),
        batch_of([part(0), part(1), part(1)]),
        batch_of([part(0), part(2)]),
        batch_of([part(0), part(1), part(2)]),
        batch_of([part(0), part(1).replace("response-", "")]),
        batch_of([part(0), part(1).replace("Content-ID", "X-ID")]),
        batch_of([part(0), part(1).replace("HTTP/1.1", "FTP")]),
        batch_of([part(0), part(1).replace("200", "2x0")]),
        Reply(status=200, body=b"{}", headers={"content-type": "application/json"}),
        Reply(status=200, body=batch_of([part(0), part(1)]).body),
        Reply(status=200, body=b"", headers={"content-type": "multipart/mixed; boundary=b"}),
        Reply(status=200, body=b"--b", headers={"content-type": "multipart/mixed; boundary=\xe9"}),
        Reply(status=200, body=b"--", headers={"content-type": "multipart/mixed; boundary=b"}),
        replace(batch_of([part(0), part(1)]), body=batch_of([part(0), part(1)]).body[:-5]),
        Reply(status=200, body=b"\xff\xfe\x00", headers={"content-type": "multipart/mixed; boundary=b"}),
    ],
)
def test_anything_but_one_answer_to_each_of_two_calls_is_refused(reply):
    with pytest.raises(ValueError, match="batch's answer"):
        read_batch(reply, 2)


@given(st.binary(max_size=300), st.text(max_size=40))
def test_nonsense_is_refused_and_nothing_else_happens(body: bytes, content_type: str):
    with pytest.raises(ValueError, match="batch's answer"):
        read_batch(Reply(status=200, body=body, headers={"content-type": content_type}), 2)
