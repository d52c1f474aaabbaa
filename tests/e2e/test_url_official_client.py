"""The official client reads tables on every kind of store by URLs, in both formats, and finds their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.components import ALL_IN_ONE, CLIENT, DELTALAKE, SEAWEEDFS, SPLIT
from tests.deployments import split
from tests.e2e.official_client import ClientError, OfficialClient
from tests.e2e.url_gateway import UrlShare, upload, url_gateway
from tests.e2e.url_stores import GCS_RSA_STORE, seaweedfs_store
from tests.e2e.url_tables import (
    AWKWARD_KEYS,
    FEED,
    FEED_PARTITIONED,
    NEED_DELTA,
    ODD,
    PLAIN,
    SPECIAL,
    TABLES,
    VECTORS,
    Written,
    without_time,
)

pytestmark = [pytest.mark.component(CLIENT), pytest.mark.component(DELTALAKE)]

NOT_EXPRESSIBLE = "Unsupported Delta Table Properties"
# In the parquet format the client writes some characters of a URL's path as they are that were escaped there.
# To most stores that is the same path. Google takes it only as it was signed.
RESPELLED = frozenset({ODD, AWKWARD_KEYS})

# Whether their files are found depends on how a store spells keys and verifies signatures. What the other
# tables, earlier versions and the choice of a format depend on is the log, which no store changes.
STORE_DEPENDENT = (ODD, AWKWARD_KEYS, VECTORS, SPECIAL)

both_formats = pytest.mark.parametrize("use_delta_format", [True, False], ids=["delta", "parquet"])


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The official client before one of the shares."""

    share: UrlShare
    client: OfficialClient

    def ask(self, call: str, name: str, **options: object) -> object:
        return self.client.call(call, self.share.address(name), **options)

    def cannot_spell(self, name: str, *, use_delta_format: bool) -> bool:
        return self.share.store.vendor == "gcp" and name in RESPELLED and not use_delta_format


@pytest.fixture
def on_each_store(url_share, url_client) -> Reader:
    return Reader(share=url_share, client=url_client)


@pytest.fixture(scope="module")
def by_five_processes(request, tmp_path_factory, url_tables, url_client) -> Iterator[Reader]:
    """One store, and a gateway whose presign service is a process of its own."""
    directory = tmp_path_factory.mktemp("url-gateway")
    with seaweedfs_store(request, directory) as store:
        upload(url_tables, store, TABLES)
        with url_gateway(directory, [store], TABLES, kind=split) as gateway:
            yield Reader(share=UrlShare(store=store, gateway=gateway), client=url_client)


@pytest.mark.component(ALL_IN_ONE)
@pytest.mark.parametrize("name", STORE_DEPENDENT)
@both_formats
def test_a_table_on_each_store_has_the_rows_that_were_written(
    on_each_store, url_tables, name, use_delta_format
):
    check_rows(on_each_store, url_tables, name, use_delta_format=use_delta_format)


@pytest.mark.component(ALL_IN_ONE)
@both_formats
def test_all_changes_are_found_on_each_store(on_each_store, url_tables, use_delta_format):
    """Their files lie in directories whose names are escaped."""
    check_changes(on_each_store, url_tables, FEED, use_delta_format=use_delta_format)


@pytest.mark.component(ALL_IN_ONE)
def test_awkward_keys_on_the_other_stores_are_read(other_share, url_client, url_tables):
    reader = Reader(share=other_share, client=url_client)
    check_rows(reader, url_tables, AWKWARD_KEYS, use_delta_format=True)


@pytest.mark.component(SPLIT, SEAWEEDFS)
@pytest.mark.parametrize("name", TABLES)
@both_formats
def test_a_table_has_the_rows_that_were_written(by_five_processes, url_tables, name, use_delta_format):
    check_rows(by_five_processes, url_tables, name, use_delta_format=use_delta_format)


@pytest.mark.component(SPLIT, SEAWEEDFS)
@pytest.mark.parametrize("name", [PLAIN, VECTORS, SPECIAL])
def test_the_client_finds_the_format_by_itself(by_five_processes, url_tables, name):
    assert by_five_processes.ask("load", name) == url_tables.latest(name)


@pytest.mark.component(SPLIT, SEAWEEDFS)
@pytest.mark.parametrize("name", [VECTORS, FEED, SPECIAL])
def test_every_version_can_be_read(by_five_processes, url_tables, name):
    for version in range(url_tables.version(name) + 1):
        assert by_five_processes.ask("load", name, version=version) == url_tables.at(name, version)


@pytest.mark.component(SPLIT, SEAWEEDFS)
@pytest.mark.parametrize("name", [FEED, FEED_PARTITIONED])
@both_formats
def test_all_changes_are_found(by_five_processes, url_tables, name, use_delta_format):
    check_changes(by_five_processes, url_tables, name, use_delta_format=use_delta_format)


def check_rows(reader: Reader, tables: Written, name: str, *, use_delta_format: bool) -> None:
    if name in NEED_DELTA and not use_delta_format:
        with pytest.raises(ClientError, match=NOT_EXPRESSIBLE):
            reader.ask("load", name, use_delta_format=False)
    elif reader.cannot_spell(name, use_delta_format=use_delta_format):
        with pytest.raises(ClientError, match="FileNotFoundError"):
            reader.ask("load", name, use_delta_format=False)
    else:
        assert reader.ask("load", name, use_delta_format=use_delta_format) == tables.latest(name)


def check_changes(reader: Reader, tables: Written, name: str, *, use_delta_format: bool) -> None:
    found = reader.ask(
        "load_changes",
        name,
        starting_version=0,
        ending_version=tables.version(name),
        use_delta_format=use_delta_format,
    )

    assert isinstance(found, dict)
    assert without_time(found) == tables.changes(name)


@pytest.mark.component(ALL_IN_ONE)
@pytest.mark.parametrize("url_share", [GCS_RSA_STORE], indirect=True)
def test_on_google_a_client_that_spells_paths_anew_is_refused_and_the_delta_format_helps(
    url_share, url_tables
):
    """The client as it is installed: a path with a partition in it has an equals sign."""
    client = OfficialClient("tests.oracles.client_frames")
    address = url_share.address(FEED_PARTITIONED)
    with pytest.raises(ClientError, match="FileNotFoundError"):
        client.call("load", address)

    assert client.call("load", address, use_delta_format=True) == url_tables.latest(FEED_PARTITIONED)
    client.close()
