"""Reads that take longer than a URL lives, on stores that have refused the first URLs in the meantime.

The official Python client asks for URLs once and has no way to renew them: they must outlive its read.

The shortest lifetime is a minute. A store whose clock a test can move needs only a new window, a quarter of
it. CI moves the clock of R2, and waits for SeaweedFS, which has the machine's clock. The library and the
gateway renew URLs in the same way on every store: the others are for a release.
tests/contract/vendor.py proves on each store that it refuses an expired URL.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.ports import utcnow
from tests.components import ALL_IN_ONE
from tests.contract.http.client import Client
from tests.contract.http.facts import TableFacts
from tests.contract.http.spark_client import Found, SparkClient
from tests.e2e.recipient_lake import RecipientProcess, recipient
from tests.e2e.url_gateway import SCHEMA, LiveTable, UrlGateway, read_url, url_gateway
from tests.e2e.url_stores import (
    AZURE_DELEGATED_STORE,
    GCS_RSA_STORE,
    R2_STORE,
    SEAWEEDFS_STORE,
    UrlStore,
    with_marks,
)
from tests.e2e.url_tables import append, plain_table

pytestmark = pytest.mark.component(ALL_IN_ONE)

# The shortest that there is; a window is a quarter of it.
LIFE = timedelta(seconds=60)
WINDOW = LIFE / 4
# More than the library has on their way at once.
FILES = 24
# More than the stores' and our own clocks differ by when they round.
MARGIN = timedelta(seconds=1)
TABLE = "orders"
OUTLIVED_STORES = (
    R2_STORE,
    SEAWEEDFS_STORE,
    *(with_marks(store, pytest.mark.release) for store in (AZURE_DELEGATED_STORE, GCS_RSA_STORE)),
)


@dataclass(frozen=True, kw_only=True)
class Outlived:
    """Reads that began with URLs which the store does not take any more, and a commit since then."""

    store: UrlStore
    gateway: UrlGateway
    spark: SparkClient
    facts: TableFacts
    # What was answered at the beginning, page by page.
    pages: list[Found]
    # Has read one file by the library, and has a few on their way.
    reader: RecipientProcess

    @property
    def first_files(self) -> list[dict[str, Any]]:
        return [line["file"] for page in self.pages for line in page.lines]

    def refreshed(self) -> Found:
        end = self.pages[0].end
        assert end is not None
        return self.spark.files(self.facts, {"refreshToken": end["refreshToken"]})


@pytest.fixture(scope="module", params=OUTLIVED_STORES)
def outlived(request, tmp_path_factory) -> Iterator[Outlived]:
    directory = tmp_path_factory.mktemp("url-life")
    with ExitStack() as stack:
        store: UrlStore = stack.enter_context(request.param(request, directory))
        table = LiveTable(TABLE, plain_table(directory / "table", FILES), store)
        life = int(LIFE.total_seconds())
        gateway = stack.enter_context(
            url_gateway(directory / "gateway", [store], [TABLE], preSignedUrlTimeoutSeconds=life)
        )
        reader = stack.enter_context(recipient())
        begun = _begin(store, gateway, reader)
        append(table.builder, 100, 2)
        table.upload()
        _outlive(store, [file["expirationTimestamp"] for file in begun.first_files])
        yield begun


def _begin(store: UrlStore, gateway: UrlGateway, reader: RecipientProcess) -> Outlived:
    address = gateway.address(store.name, TABLE)
    reader.call("open", address, mode="url")
    assert reader.call("begin", address, "arrow") == 1
    facts = TableFacts(
        share=store.name,
        schema=SCHEMA,
        name=TABLE,
        id="",
        share_id="",
        version=0,
        files=FILES,
        size=0,
        location=f"{store.prefix}/{TABLE}",
    )
    here: Any = SimpleNamespace(url=gateway.deployment.base_url, token=gateway.token)
    spark = SparkClient(Client(here))
    pages = spark.all_pages(facts, 8)
    begun = Outlived(store=store, gateway=gateway, spark=spark, facts=facts, pages=pages, reader=reader)
    first, *_ = begun.first_files
    assert len(spark.read(first["url"], first["size"])) == first["size"]
    return begun


def _outlive(store: UrlStore, expirations: list[int]) -> None:
    """Wait until the store takes none of these URLs, and some that are made now."""
    last = datetime.fromtimestamp(max(expirations) / 1000, UTC)
    if store.clock is None:
        _wait_until(last + MARGIN)
        return
    # Long enough for a new window, whose URLs live longer. The store's clock moves on, and waits there for
    # ours: while it ran ahead, every new URL would live for seconds only.
    _wait_until(last - LIFE + WINDOW + MARGIN)
    store.clock.least = last + MARGIN


def _wait_until(moment: datetime) -> None:
    while (left := (moment - utcnow()).total_seconds()) > 0:
        time.sleep(min(left, 1))


def test_a_url_of_a_query_is_refused_after_its_time(outlived):
    for file in outlived.first_files:
        assert read_url(file["url"]).status in {400, 403}


def test_a_refresh_names_the_same_files_of_the_same_version_with_fresh_urls(outlived):
    """AT-54."""
    again = outlived.refreshed()

    first = outlived.first_files
    assert again.version == outlived.pages[0].version == 0
    assert [line["file"]["id"] for line in again.lines] == [file["id"] for file in first]
    for line, old in zip(again.lines, first, strict=True):
        assert line["file"]["url"].partition("?")[0] == old["url"].partition("?")[0]
        assert line["file"]["url"] != old["url"]
        assert line["file"]["expirationTimestamp"] > old["expirationTimestamp"]


def test_whoever_asks_anew_gets_what_was_committed_since(outlived):
    latest = outlived.spark.files(outlived.facts)

    assert latest.version == 1
    assert len(latest.lines) == FILES + 2


def test_a_paged_read_that_outlives_its_urls_goes_on_by_refreshing(outlived):
    for file in outlived.first_files[1:]:
        urls = {line["file"]["id"]: line["file"]["url"] for line in outlived.refreshed().lines}
        assert len(outlived.spark.read(urls[file["id"]], file["size"])) == file["size"]


def test_the_library_goes_on_in_the_middle_of_a_read(outlived):
    rest = outlived.reader.call("finish_ids")

    # Of the version that it began with: what was committed since is not in it.
    assert sorted(rest) == list(range(1, FILES))
