"""A recipient reads tables on every kind of store by URLs, with the engine that he likes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.components import ALL_IN_ONE, CLIENT, DUCKDB
from tests.e2e.recipient_lake import RecipientProcess, recipient
from tests.e2e.url_gateway import UrlGateway, upload, url_gateway
from tests.e2e.url_stores import GCS_COMPONENTS, STORES, UrlStore, gcs_rsa_store
from tests.e2e.url_tables import AWKWARD_KEYS, FEED, ODD, SPECIAL, VECTORS

pytestmark = pytest.mark.component(ALL_IN_ONE)

TABLES = (ODD, AWKWARD_KEYS, SPECIAL, FEED, VECTORS)
ENGINES = ["arrow", "polars", pytest.param("duckdb", marks=pytest.mark.component(DUCKDB))]


@dataclass(frozen=True, kw_only=True)
class Shared:
    store: UrlStore
    gateway: UrlGateway
    reader: RecipientProcess

    def rows(self, engine: str, table: str, **options: object) -> object:
        return self.reader.call("rows", engine, self.gateway.address(self.store.name, table), **options)


@pytest.fixture(scope="module", params=STORES)
def shared(request, tmp_path_factory, url_tables) -> Iterator[Shared]:
    directory = tmp_path_factory.mktemp("url-recipient")
    with request.param(request, directory) as store:
        upload(url_tables, store, TABLES)
        with url_gateway(directory, [store], TABLES) as gateway, recipient() as reader:
            yield Shared(store=store, gateway=gateway, reader=reader)


@pytest.mark.parametrize("table", [ODD, AWKWARD_KEYS, SPECIAL])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_reads_the_rows_that_were_written(shared, url_tables, engine, table):
    assert shared.rows(engine, table) == url_tables.latest(table)


@pytest.mark.component(CLIENT)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_and_columns_that_only_the_log_tells_are_read_by_way_of_the_official_client(
    shared, url_tables, engine
):
    assert shared.rows(engine, VECTORS) == url_tables.latest(VECTORS)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_earlier_version_is_read(shared, url_tables, engine):
    for version in range(1, url_tables.version(FEED) + 1):
        assert shared.rows(engine, FEED, version=version) == url_tables.at(FEED, version)


@pytest.mark.component(*GCS_COMPONENTS)
@pytest.mark.system
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_cannot_open_the_directory_falls_back_to_urls(request, tmp_path, url_tables, engine):
    """Nobody can give delta-rs a token for Google's store, though the table is shared as a directory, too."""
    with gcs_rsa_store(request, tmp_path) as store:
        upload(url_tables, store, [ODD])
        both = {"name": ODD, "accessModes": ["url", "dir"]}
        with url_gateway(tmp_path, [store], [both]) as gateway, recipient() as reader:
            address = gateway.address(store.name, ODD)

            assert reader.call("rows", engine, address, mode="auto") == url_tables.latest(ODD)
