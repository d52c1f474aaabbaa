"""What must not be had by URLs, asked of real stores: other keys, other places, and what is not granted."""

from __future__ import annotations

import io
import re
from urllib.parse import parse_qsl, unquote

import polars as pl
import pytest

from tests.components import ALL_IN_ONE
from tests.e2e.url_attack_tables import CLONE, LEADING_OUT, ORIGIN
from tests.e2e.url_gateway import DELTA, read_url, recipients, urls_of
from tests.e2e.url_stores import SEAWEEDFS_STORE
from tests.e2e.url_tables import AWKWARD_KEYS, ODD_KEYS, PLAIN
from tests.waiting import eventually

pytestmark = pytest.mark.component(ALL_IN_ONE)

PARQUET = "responseformat=parquet"
# The third: in the parquet format, a table with deletion vectors is refused before its files are looked at.
REFUSALS = "has files outside of its directory|not safe to follow|cannot express"


def test_a_url_leads_to_exactly_the_key_that_is_stored(each_share):
    """AT-51."""
    found = set()
    for url in urls_of(each_share.query(AWKWARD_KEYS)):
        answer = read_url(url)
        assert answer.status == 200, answer.body
        key = pl.read_parquet(io.BytesIO(answer.body))["part"].item()
        assert unquote(url.partition("?")[0]) == f"{unquote(each_share.store.origin)}{AWKWARD_KEYS}/{key}"
        found.add(key)

    assert found == set(ODD_KEYS)


def test_both_formats_have_the_same_urls(url_share):
    answer = url_share.query(AWKWARD_KEYS, capabilities=DELTA)
    paths = [line["file"]["deltaSingleAction"]["add"]["path"] for line in answer.streamed() if "file" in line]

    assert paths == urls_of(url_share.query(AWKWARD_KEYS))


def test_a_url_leads_to_the_endpoint_of_the_storage_and_is_signed_for_its_region(each_share):
    """AT-53."""
    for url in urls_of(each_share.query(PLAIN)):
        assert url.startswith(f"{each_share.store.origin}{PLAIN}/")
        parameters = dict(parse_qsl(url.partition("?")[2], strict_parsing=True))
        if scope := parameters.get("X-Amz-Credential"):
            store = each_share.store
            region = "auto" if store.vendor == "r2" else store.options.get("region", "us-east-1")
            assert scope.split("/")[2:] == [region, "s3", "aws4_request"]


def test_a_signature_opens_no_other_file_of_the_table(each_share):
    first, second, *_ = urls_of(each_share.query(PLAIN))
    swapped = f"{second.partition('?')[0]}?{first.partition('?')[2]}"

    assert read_url(second).status == 200
    assert read_url(swapped).status == 403


@pytest.mark.parametrize("capabilities", [PARQUET, DELTA], ids=["parquet", "delta"])
@pytest.mark.parametrize("table", LEADING_OUT)
def test_a_log_that_leads_out_of_its_table_is_refused_whole(each_share, table, capabilities):
    """AT-30."""
    answer = each_share.query(table, capabilities=capabilities)

    assert answer.status == 400, answer.body
    assert re.search(REFUSALS, answer.message())
    assert each_share.store.origin.encode() not in answer.body


def test_a_shallow_clone_is_served_where_its_entry_names_the_other_place(each_share):
    """AT-30: each file is signed for where it lies."""
    urls = urls_of(each_share.query(CLONE))

    assert len(urls) == 6
    for url in urls:
        assert url.startswith(f"{each_share.store.origin}{ORIGIN}/")
        answer = read_url(url)
        assert answer.status == 200, answer.body
        assert pl.read_parquet(io.BytesIO(answer.body)).height == 1


@pytest.mark.parametrize("table", [PLAIN, CLONE, "no_such_table"])
def test_whoever_has_no_grant_gets_what_he_would_get_if_there_were_nothing(each_share, table):
    answer = each_share.query(table, token=each_share.gateway.stranger)

    assert answer.error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert each_share.store.origin.encode() not in answer.body


# Whatever the store: the gateway refuses before it reads or signs.
@pytest.mark.parametrize("url_share", [SEAWEEDFS_STORE], indirect=True)
def test_a_grant_that_is_taken_away_brings_no_more_urls_from_the_next_request_on(url_share):
    gateway = url_share.gateway
    asked = {"body": {"includeRefreshToken": True, "maxFiles": 2}}
    answer = url_share.query(PLAIN, **asked)
    end = answer.streamed()[-1]["endStreamAction"]

    gateway.deployment.rewrite({"recipients": recipients(gateway.token, gateway.stranger, [])})
    try:
        eventually(lambda: url_share.query(PLAIN).status == 404)
        # Nor by what an earlier answer led to.
        for token in ({"pageToken": end["nextPageToken"]}, {"refreshToken": end["refreshToken"]}):
            assert url_share.query(PLAIN, body=token).error() == (404, "RESOURCE_DOES_NOT_EXIST")
        # What is in a recipient's hands lives to its end.
        assert all(read_url(url).status == 200 for url in urls_of(answer))
    finally:
        gateway.deployment.rewrite(
            {"recipients": recipients(gateway.token, gateway.stranger, gateway.shares)}
        )
    eventually(lambda: url_share.query(PLAIN).status == 200)
