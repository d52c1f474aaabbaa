from __future__ import annotations

from datetime import UTC, datetime

from multidict import CIMultiDict, CIMultiDictProxy

from gateway.edge.conditional import allows_range, http_date, is_known, is_other
from tests.cases import each_case

ETAG = '"a-1"'
CHANGED = datetime(2025, 6, 1, 12, tzinfo=UTC)
DATE = "Sun, 01 Jun 2025 12:00:00 GMT"
BEFORE = "Sun, 01 Jun 2025 11:59:59 GMT"
AFTER = "Sun, 01 Jun 2025 12:00:01 GMT"


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def test_date_is_spelled_as_http_has_it():
    assert http_date(CHANGED) == DATE


@each_case(
    ("pairs", "known"),
    [
        ([], False),
        ([("If-None-Match", ETAG)], True),
        ([("if-none-match", f'"x", W/{ETAG} ,"y"')], True),
        ([("If-None-Match", '"x"'), ("If-None-Match", ETAG)], True),
        ([("If-None-Match", "*")], True),
        ([("If-None-Match", '"x"')], False),
        ([("If-None-Match", "")], False),
        ([("If-Modified-Since", DATE)], True),
        ([("If-Modified-Since", AFTER)], True),
        ([("If-Modified-Since", BEFORE)], False),
        ([("If-Modified-Since", "yesterday")], False),
        ([("If-Modified-Since", f"Sun, 01 Jun 2025 12:00:00 +{'9' * 20}")], False),
        ([("If-Modified-Since", "Sun, 01 Jun 2025 12:00:00 -0000")], True),
        ([("If-None-Match", '"x"'), ("If-Modified-Since", AFTER)], False),
    ],
    ids=str,
)
def test_version_that_the_client_has_is_known(pairs, known):
    assert is_known(headers(*pairs), ETAG, CHANGED) is known


@each_case(
    ("pairs", "other"),
    [
        ([], False),
        ([("If-Match", ETAG)], False),
        ([("If-Match", f'"x", {ETAG}')], False),
        ([("If-Match", "*")], False),
        ([("If-Match", '"x"')], True),
        ([("If-Match", f"W/{ETAG}")], True),
    ],
    ids=str,
)
def test_version_that_the_client_does_not_want_is_other(pairs, other):
    assert is_other(headers(*pairs), ETAG) is other


@each_case(
    ("pairs", "allowed"),
    [
        ([], True),
        ([("If-Range", ETAG)], True),
        ([("If-Range", DATE)], True),
        ([("If-Range", '"x"')], False),
        ([("If-Range", f"W/{ETAG}")], False),
        ([("If-Range", BEFORE)], False),
        ([("If-Range", AFTER)], False),
        ([("If-Range", "")], False),
    ],
    ids=str,
)
def test_range_completes_only_the_same_version(pairs, allowed):
    assert allows_range(headers(*pairs), ETAG, CHANGED) is allowed
