"""The sample tables, served in one process and in five, and the official client before them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from gateway.demo.sample import SHARE, SampleCatalog
from gateway.demo.sample_tables import SampleTable
from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from gateway.services.snapshot.answer.batch import MAX_BYTES
from tests.components import ALL_IN_ONE, SPLIT
from tests.deployments import all_in_one, split
from tests.e2e.official_client import OfficialClient
from tests.e2e.recipient_lake import RecipientProcess, recipient
from tests.e2e.url_gateway import UrlShare, upload, url_gateway
from tests.e2e.url_stores import STORES
from tests.e2e.url_tables import TABLES, Written, write
from tests.sample import shared_sample

PAGES_SCHEMA, SEVERAL_PAGES = "paging", "several_pages"


class Sample:
    """The sample tables on disk, read there by deltalake, each once."""

    def __init__(self, catalog: SampleCatalog, client: OfficialClient) -> None:
        self.catalog = catalog
        self._client = client
        self._read: dict[tuple[SampleTable, int | None], Any] = {}
        self._described: dict[SampleTable, Any] = {}

    def read(self, table: SampleTable, version: int | None = None) -> Any:
        """Return the rows of a version."""
        key = (table, version)
        if key not in self._read:
            directory = self.catalog.location_of(table)
            self._read[key] = self._client.call("read_directory", directory, version=version)
        return self._read[key]

    def read_days(self, table: SampleTable, rows: Iterable[str]) -> Any:
        """Return the rows of the days that some rows are of, without the rest of a large table."""
        days = sorted({json.loads(row)["day"] for row in rows})
        return self._client.call("read_partitions", self.catalog.location_of(table), "day", days)

    def describe(self, table: SampleTable) -> Any:
        """Return what the log says of the latest version, without reading a data file."""
        if table not in self._described:
            directory = self.catalog.location_of(table)
            self._described[table] = self._client.call("describe_directory", directory)
        return self._described[table]


@dataclass(frozen=True, slots=True)
class Served:
    """A deployment that serves the sample, and the official client with a profile of it."""

    profile: Path
    client: OfficialClient

    def ask(self, call: str, *arguments: object, **options: object) -> Any:
        return self.client.call(call, self.profile, *arguments, **options)


@pytest.fixture(scope="session")
def sample(tmp_path_factory, official_client) -> Sample:
    return Sample(shared_sample(tmp_path_factory), official_client)


@pytest.fixture(scope="session")
def several_pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of few files whose listing takes the snapshot service several pages.

    A page ends at 1,000 files or at 1 MiB. Statistics of 40 KiB reach the second limit with 26 files.
    """
    directory = tmp_path_factory.mktemp("several-pages") / SEVERAL_PAGES
    rows = [{"number": number, "text": f"{number:03}" * 7_000} for number in range(80)]
    fields = [Field("number", "long"), Field("text", "string")]
    TableBuilder(directory, fields).append(rows[:60], files=60).append(rows[60:], files=20)
    listed = sum(file.stat().st_size for file in (directory / "_delta_log").glob("*.json"))
    assert listed > 3 * MAX_BYTES
    return directory


@pytest.fixture(scope="session")
def official_client() -> Iterator[OfficialClient]:
    client = OfficialClient()
    yield client
    client.close()


@pytest.fixture(scope="session")
def url_tables(tmp_path_factory) -> Written:
    """Tables on disk, to be copied to object stores."""
    return write(tmp_path_factory.mktemp("url-tables"))


@pytest.fixture(scope="package", params=STORES)
def url_share(request, tmp_path_factory, url_tables) -> Iterator[UrlShare]:
    """The tables on each kind of store, shared by a gateway in one process."""
    directory = tmp_path_factory.mktemp("url-gateway")
    with request.param(request, directory) as store:
        upload(url_tables, store, TABLES)
        with url_gateway(directory, [store], TABLES) as gateway:
            yield UrlShare(store=store, gateway=gateway)


@pytest.fixture(scope="session")
def url_client() -> Iterator[OfficialClient]:
    """The official client, as it reads URLs of every kind of store."""
    client = OfficialClient("tests.e2e.read_urls_with_client")
    yield client
    client.close()


@pytest.fixture(scope="session")
def url_reader() -> Iterator[RecipientProcess]:
    """The recipient's library, with no identity of its own."""
    with recipient() as reader:
        yield reader


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(all_in_one, id="all-in-one", marks=pytest.mark.component(ALL_IN_ONE)),
        pytest.param(split, id="split", marks=pytest.mark.component(SPLIT)),
    ],
)
def served(request, tmp_path_factory, sample, several_pages, official_client) -> Iterator[Served]:
    pages = {"name": SEVERAL_PAGES, "location": str(several_pages)}
    (share,) = sample.catalog.to_shares()
    directory = tmp_path_factory.mktemp("deployment")
    token = secrets.token_urlsafe(32)
    settings = {
        "version": 1,
        "shares": [share | {"schemas": [*share["schemas"], {"name": PAGES_SCHEMA, "tables": [pages]}]}],
        "storages": [
            {"name": "sample", "prefix": str(sample.catalog.directory), "vendor": "local"},
            {"name": "pages", "prefix": str(several_pages.parent), "vendor": "local"},
        ],
        "recipients": [{"name": "reader", "tokens": [{"hash": hash_of(token)}], "shares": [SHARE]}],
        # The client reads files one after the other, as fast as it can.
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
    }
    with request.param(directory, settings) as deployment:
        profile = directory / "reader.share"
        profile.write_text(
            json.dumps({"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token})
        )
        yield Served(profile, official_client)
