"""The sample tables, served in one process and in five, and the official client before them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
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
from tests.e2e.url_attack_tables import attack_entries, upload_attacks
from tests.e2e.url_gateway import Entry, UrlShare, upload, url_gateway
from tests.e2e.url_stores import GCS_RSA_STORE, OTHER_STORES, STORES, VENDOR_STORES, UrlStore, with_marks
from tests.e2e.url_tables import AWKWARD_KEYS, ODD, PLAIN, TABLES, Written, write
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


@pytest.fixture(scope="package")
def url_shares(request, tmp_path_factory, url_tables) -> Iterator[dict[object, UrlShare]]:
    """The tables on each store that a selected test uses, shared by one gateway, by the store's parameter."""
    directory = tmp_path_factory.mktemp("url-gateway")
    used = {
        fixture: {
            item.callspec.params.get(fixture) for item in request.session.items if hasattr(item, "callspec")
        }
        for fixture in ("url_share", "each_share", "other_share")
    }
    runs = [store.values[0] for store in STORES if store.values[0] in set().union(*used.values())]
    with ExitStack() as stack:
        stores = [
            stack.enter_context(run(request, directory / str(number))) for number, run in enumerate(runs)
        ]
        for run, store in zip(runs, stores, strict=True):
            is_complete = run in used["url_share"]
            upload(url_tables, store, TABLES if is_complete else [PLAIN, AWKWARD_KEYS])
            upload_attacks(directory / store.name, store)
        gateway = stack.enter_context(
            url_gateway(directory / "gateway", stores, TABLES, entries_of=_entries_of)
        )
        yield {run: UrlShare(store=store, gateway=gateway) for run, store in zip(runs, stores, strict=True)}


def _entries_of(store: UrlStore) -> list[Entry]:
    # delta-rs cannot open this table's directory.
    both = {"name": ODD, "accessModes": ["url", "dir"]}
    return attack_entries(store) + ([both] if store.name == GCS_RSA_STORE.id else [])


@pytest.fixture(params=[*VENDOR_STORES, *(with_marks(store, pytest.mark.release) for store in OTHER_STORES)])
def url_share(request, url_shares) -> UrlShare:
    """The tables on one store of each vendor, and in the release lane on the other kinds of stores."""
    share: UrlShare = url_shares[request.param]
    return share


@pytest.fixture(params=STORES)
def each_share(request, url_shares) -> UrlShare:
    """The tables on each kind of store."""
    share: UrlShare = url_shares[request.param]
    return share


@pytest.fixture(params=OTHER_STORES)
def other_share(request, url_shares) -> UrlShare:
    """The tables on each kind of store that `url_share` leaves to the release lane."""
    share: UrlShare = url_shares[request.param]
    return share


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
    scope="package",
    params=[
        # CI has the client before one process in test_deltalake_official_client and test_make_run.
        pytest.param(
            all_in_one, id="all-in-one", marks=[pytest.mark.component(ALL_IN_ONE), pytest.mark.release]
        ),
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
