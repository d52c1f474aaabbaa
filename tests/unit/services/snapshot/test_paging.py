from __future__ import annotations

import pytest

from gateway.errors import InvalidArgument
from gateway.services.snapshot.paging import PageLimits
from gateway.v1.snapshot_pb2 import ChangesRequest, QueryRequest

_LIMITS = PageLimits(files=10)

both = pytest.mark.parametrize("request_type", [QueryRequest, ChangesRequest])


@both
def test_who_does_not_ask_for_pages_gets_everything_at_once(request_type):
    assert _LIMITS.count_of(request_type()) is None


@both
@pytest.mark.parametrize(("asked", "given"), [(1, 1), (9, 9), (10, 10), (11, 10), (2**31 - 1, 10)])
def test_a_page_has_as_many_files_as_are_asked_for_up_to_the_limit(request_type, asked, given):
    assert _LIMITS.count_of(request_type(max_files=asked)) == given
    assert _LIMITS.count_of(request_type(max_files=asked, page_token="t")) == given


@both
def test_who_goes_on_without_a_number_gets_pages_of_the_limit(request_type):
    assert _LIMITS.count_of(request_type(page_token="t")) == 10


@both
@pytest.mark.parametrize("asked", [0, -1, -(2**31)])
def test_a_page_of_nothing_is_refused(request_type, asked):
    with pytest.raises(InvalidArgument, match=f"maxFiles must be greater than or equal to 1, not {asked}"):
        _LIMITS.count_of(request_type(max_files=asked))
