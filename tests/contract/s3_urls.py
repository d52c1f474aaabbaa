"""A recipient of URLs into an S3 store, who has an HTTP client and nothing else."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import aiohttp

from gateway.adapters.vendors import find_vendor
from gateway.domain.location import Location, parse_location
from gateway.ports import Storage, StorageSettings
from tests.contract.vendor import REFUSED, Fetched, SignerContract, signed
from tests.fakes.sessions import FakeSessions
from tests.stores.s3 import S3Store

# Parameters that ask S3 for another view of an object, or for something else than an object.
MORE = (
    *("acl", "acl=", "policy", "tagging", "versions", "uploads", "uploadId=1", "versionId=null"),
    *("response-content-type=text/html", "list-type=2", "prefix=", "x-id=GetObject"),
)


class S3UrlHarness:
    """A storage that signs; the tables' owner writes with the administrator's keys."""

    def __init__(self, storage: Storage, store: S3Store) -> None:
        self.storage = storage
        self._store = store

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.storage.prefix.text}/{directory}")

    async def put(self, location: Location, path: str, content: bytes) -> None:
        key = f"{location.path}/{path}" if location.path else path
        await asyncio.to_thread(self._store.put, location.authority, key, content)

    async def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Fetched:
        return await asyncio.to_thread(_fetch, url, method, headers or {})


def _fetch(url: str, method: str, headers: Mapping[str, str]) -> Fetched:
    # Sends the text as it is.
    parts = urlsplit(url)
    body = b"written" if method in {"PUT", "POST"} else None
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        connection.request(method, f"{parts.path}?{parts.query}", body, dict(headers))
        response = connection.getresponse()
        return Fetched(status=response.status, body=response.read(), headers=dict(response.getheaders()))


@asynccontextmanager
async def opened_to_sign(vendor: str, prefix: str, options: Mapping[str, object]) -> AsyncIterator[Storage]:
    location = parse_location(prefix)
    assert find_vendor(vendor).check(options) == []
    assert find_vendor(vendor).check_url(options, location) == []
    settings = StorageSettings(
        name="lake", prefix=location, options=options, public_url="", sessions=FakeSessions()
    )
    async with find_vendor(vendor).open(settings) as storage:
        yield storage


class S3SignerContract(SignerContract):
    """Tests over a fixture ``harness``, for what only S3 has."""

    async def test_url_with_something_more_is_refused(self, harness):
        """AT-16: a signature is for a file, and for no other view of it."""
        table = harness.location("more")
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "a")
        forged = [text for more in MORE for text in (f"{url}&{more}", url.replace("?", f"?{more}&"))]

        fetched = {text: await harness.fetch(text) for text in forged}

        assert [text for text, answer in fetched.items() if answer.status not in REFUSED] == []
        assert [text for text, answer in fetched.items() if b"rows" in answer.body] == []

    async def test_url_that_has_expired_does_not_live_longer_by_a_second_life(self, harness):
        table = harness.location("expired")
        await harness.put(table, "a", b"rows")
        long_ago = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
        (url,) = await signed(harness, table, "a", started_at=long_ago)

        for forged in (f"{url}&X-Amz-Expires=604800", url.replace("?", "?X-Amz-Expires=604800&")):
            assert (await harness.fetch(forged)).status in REFUSED

    async def test_url_that_a_client_spells_otherwise_serves_the_same_file(self, harness):
        """AT-51: some undo escapes that a path does not need."""
        table = harness.location("50%/é=1")
        name = "date=2021-04-28/(a)+b c,d@e:f!'$&;~%41.parquet"
        await harness.put(table, name, b"rows")
        (url,) = await signed(harness, table, name)

        async with aiohttp.ClientSession() as client, client.get(url) as response:
            assert (response.status, await response.read()) == (200, b"rows")
            assert str(response.url) != url

    async def test_url_leads_to_a_file_and_to_no_listing(self, harness):
        table = harness.location("listed")
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "a")
        place, _, query = url.partition("?")

        for above in (place.rpartition("/")[0], place.removesuffix("listed/a"), f"{place}/", f"{place}/b"):
            assert (await harness.fetch(f"{above}?{query}")).status in REFUSED
