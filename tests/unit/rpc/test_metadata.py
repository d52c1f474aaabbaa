from __future__ import annotations

from gateway.rpc.metadata import call_metadata, find_metadata, request_id_of


class Context:
    def __init__(self, *pairs):
        self.pairs = pairs

    def invocation_metadata(self):
        return self.pairs


def test_only_what_is_there_is_sent():
    assert call_metadata("r", "") == (("x-request-id", "r"),)
    assert call_metadata("r", "00-a-b-01") == (("x-request-id", "r"), ("traceparent", "00-a-b-01"))


def test_a_missing_value_is_empty():
    assert request_id_of(Context()) == ""
    assert find_metadata(Context(("a", b"bytes")), "a") == ""


def test_a_value_is_found_by_name():
    assert request_id_of(Context(("other", "1"), ("x-request-id", "r-1"))) == "r-1"


def test_a_request_id_that_is_unfit_for_logs_is_none():
    assert request_id_of(Context(("x-request-id", "r" * 128))) == "r" * 128
    assert request_id_of(Context(("x-request-id", "r" * 129))) == ""
    assert request_id_of(Context(("x-request-id", "two words"))) == ""
