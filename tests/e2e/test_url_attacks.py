"""What must not be had by URLs, asked of real stores: other keys, other places, and what is not granted."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import polars as pl
import pytest

from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from gateway.demo.table_feature import with_features
from tests.components import ALL_IN_ONE
from tests.contract.http.client import Answer
from tests.e2e.url_gateway import (
    DELTA,
    LiveTable,
    UrlGateway,
    read_url,
    recipients,
    upload,
    url_gateway,
    urls_of,
)
from tests.e2e.url_stores import STORES, UrlStore
from tests.e2e.url_tables import AWKWARD_KEYS, ODD_KEYS, PLAIN, plain_table
from tests.waiting import eventually

pytestmark = pytest.mark.component(ALL_IN_ONE)

ORIGIN = "origin"
CLONE = "clone"
# Each has a log that leads out of its directory.
LEADING_OUT = ("outside", "beside", "dots", "escaped_dots", "half_escaped_dots", "vector_outside", "sibling")

# Those whose entries name the origin as another place of theirs.
BY_ENTRY = (CLONE, "sibling", "beside")
# The third: in the parquet format, a table with deletion vectors is refused before its files are looked at.
REFUSALS = "has files outside of its directory|not safe to follow|cannot express"

FIELDS = [Field("id", "long"), Field("part", "string")]


@dataclass(frozen=True, kw_only=True)
class Shared:
    store: UrlStore
    gateway: UrlGateway

    def query(self, table: str, **options: Any) -> Answer:
        return self.gateway.query(self.store.name, table, **options)


@pytest.fixture(scope="module", params=STORES)
def shared(request, tmp_path_factory, url_tables) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("url-attacks")
    with request.param(request, directory) as store:
        upload(url_tables, store, [AWKWARD_KEYS, PLAIN])
        origin = plain_table(directory / ORIGIN)
        LiveTable(ORIGIN, origin, store)
        for name in (CLONE, *LEADING_OUT):
            LiveTable(name, _leading_to(directory / name, name, origin, store.prefix), store)
        other = {"auxiliaryLocations": [f"{store.prefix}/{ORIGIN}"]}
        named = [{"name": each, **(other if each in BY_ENTRY else {})} for each in (CLONE, *LEADING_OUT)]
        with url_gateway(directory, [store], [AWKWARD_KEYS, PLAIN, *named]) as gateway:
            yield Shared(store=store, gateway=gateway)


def _leading_to(directory: Path, name: str, origin: TableBuilder, prefix: str) -> TableBuilder:
    """Return a table whose log names the files of another one, in some way."""
    features: dict[str, Any] = with_features("deletionVectors") if name == "vector_outside" else {}
    table = TableBuilder(directory, FIELDS, **features)
    if name == "vector_outside":
        table.append([{"id": number, "part": "own"} for number in range(4)])
        ((path, add),) = table.live.items()
        vector = {"storageType": "p", "pathOrInlineDv": f"{prefix}/{ORIGIN}/vector.bin"}
        told = {**vector, "offset": 1, "sizeInBytes": 40, "cardinality": 1}
        return table.commit(*table.remove(path), {"add": {**add, "deletionVector": told}})
    root = {
        CLONE: f"{prefix}/{ORIGIN}/",
        "outside": f"{prefix}/{ORIGIN}/",
        # Begins with the name of a place that the entry names.
        "sibling": f"{prefix}/{ORIGIN}-secret/",
        "beside": f"{prefix}/besides/../{ORIGIN}/",
        "dots": f"../{ORIGIN}/",
        "escaped_dots": f"%2e%2e/{ORIGIN}/",
        "half_escaped_dots": f"part=1/.%2E/../{ORIGIN}/",
    }[name]
    return table.commit(*({"add": {**add, "path": root + path}} for path, add in origin.live.items()))


def test_a_url_leads_to_exactly_the_key_that_is_stored(shared):
    """AT-51."""
    found = set()
    for url in urls_of(shared.query(AWKWARD_KEYS)):
        answer = read_url(url)
        assert answer.status == 200, answer.body
        key = pl.read_parquet(io.BytesIO(answer.body))["part"].item()
        assert unquote(url.partition("?")[0]) == f"{unquote(shared.store.origin)}{AWKWARD_KEYS}/{key}"
        found.add(key)

    assert found == set(ODD_KEYS)


def test_both_formats_have_the_same_urls(shared):
    answer = shared.query(AWKWARD_KEYS, capabilities=DELTA)
    paths = [line["file"]["deltaSingleAction"]["add"]["path"] for line in answer.streamed() if "file" in line]

    assert paths == urls_of(shared.query(AWKWARD_KEYS))


def test_a_url_leads_to_the_endpoint_of_the_storage_and_is_signed_for_its_region(shared):
    """AT-53."""
    for url in urls_of(shared.query(PLAIN)):
        assert url.startswith(f"{shared.store.origin}{PLAIN}/")
        parameters = dict(parse_qsl(url.partition("?")[2], strict_parsing=True))
        if scope := parameters.get("X-Amz-Credential"):
            region = (
                "auto" if shared.store.vendor == "r2" else shared.store.options.get("region", "us-east-1")
            )
            assert scope.split("/")[2:] == [region, "s3", "aws4_request"]


def test_a_signature_opens_no_other_file_of_the_table(shared):
    first, second, *_ = urls_of(shared.query(PLAIN))
    swapped = f"{second.partition('?')[0]}?{first.partition('?')[2]}"

    assert read_url(second).status == 200
    assert read_url(swapped).status == 403


@pytest.mark.parametrize("capabilities", ["responseformat=parquet", DELTA], ids=["parquet", "delta"])
@pytest.mark.parametrize("table", LEADING_OUT)
def test_a_log_that_leads_out_of_its_table_is_refused_whole(shared, table, capabilities):
    """AT-30."""
    answer = shared.query(table, capabilities=capabilities)

    assert answer.status == 400, answer.body
    assert re.search(REFUSALS, answer.message())
    assert shared.store.origin.encode() not in answer.body


def test_a_shallow_clone_is_served_where_its_entry_names_the_other_place(shared):
    """AT-30: each file is signed for where it lies."""
    urls = urls_of(shared.query(CLONE))

    assert len(urls) == 6
    for url in urls:
        assert url.startswith(f"{shared.store.origin}{ORIGIN}/")
        answer = read_url(url)
        assert answer.status == 200, answer.body
        assert pl.read_parquet(io.BytesIO(answer.body)).height == 1


@pytest.mark.parametrize("table", [PLAIN, CLONE, "no_such_table"])
def test_whoever_has_no_grant_gets_what_he_would_get_if_there_were_nothing(shared, table):
    answer = shared.query(table, token=shared.gateway.stranger)

    assert answer.error() == (404, "RESOURCE_DOES_NOT_EXIST")
    assert shared.store.origin.encode() not in answer.body


def test_a_grant_that_is_taken_away_brings_no_more_urls_from_the_next_request_on(shared):
    gateway, name = shared.gateway, shared.store.name
    asked = {"body": {"includeRefreshToken": True, "maxFiles": 2}}
    answer = shared.query(PLAIN, **asked)
    end = answer.streamed()[-1]["endStreamAction"]

    gateway.deployment.rewrite({"recipients": recipients(gateway.token, gateway.stranger, [])})
    try:
        eventually(lambda: shared.query(PLAIN).status == 404)
        # Nor by what an earlier answer led to.
        for token in ({"pageToken": end["nextPageToken"]}, {"refreshToken": end["refreshToken"]}):
            assert shared.query(PLAIN, body=token).error() == (404, "RESOURCE_DOES_NOT_EXIST")
        # What is in a recipient's hands lives to its end.
        assert all(read_url(url).status == 200 for url in urls_of(answer))
    finally:
        gateway.deployment.rewrite({"recipients": recipients(gateway.token, gateway.stranger, [name])})
    eventually(lambda: shared.query(PLAIN).status == 200)
