"""A recipient reads tables on every kind of store by URLs, with the engine that he likes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.components import ALL_IN_ONE, CLIENT, DUCKDB
from tests.e2e.recipient_lake import RecipientProcess
from tests.e2e.url_gateway import UrlShare
from tests.e2e.url_stores import GCS_RSA_STORE, STORES
from tests.e2e.url_tables import AWKWARD_KEYS, FEED, ODD, SPECIAL, VECTORS

pytestmark = pytest.mark.component(ALL_IN_ONE)

ENGINES = ["arrow", "polars", pytest.param("duckdb", marks=pytest.mark.component(DUCKDB))]


@dataclass(frozen=True, kw_only=True)
class Shared:
    share: UrlShare
    reader: RecipientProcess

    def rows(self, engine: str, table: str, **options: object) -> object:
        return self.reader.call("rows", engine, self.share.address(table), **options)


@pytest.fixture
def shared(url_share, url_reader) -> Shared:
    return Shared(share=url_share, reader=url_reader)


@pytest.fixture
def engine_of_store(url_share) -> str:
    """An engine for each store: for what depends on the store or on the engine alone."""
    names = [store.id for store in STORES]
    return ("arrow", "polars", "duckdb")[names.index(url_share.store.name) % 3]


@pytest.mark.parametrize("table", [ODD, AWKWARD_KEYS])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_reads_the_rows_that_were_written(shared, url_tables, engine, table):
    assert shared.rows(engine, table) == url_tables.latest(table)


@pytest.mark.component(DUCKDB)
def test_an_engine_reads_awkward_keys_on_the_other_stores(other_share, url_reader, url_tables):
    rows = url_reader.call("rows", "duckdb", other_share.address(AWKWARD_KEYS))
    assert rows == url_tables.latest(AWKWARD_KEYS)


@pytest.mark.component(DUCKDB)
def test_a_table_of_another_writer_is_read(shared, url_tables, engine_of_store):
    assert shared.rows(engine_of_store, SPECIAL) == url_tables.latest(SPECIAL)


@pytest.mark.component(CLIENT, DUCKDB)
def test_rows_and_columns_that_only_the_log_tells_are_read_by_way_of_the_official_client(
    shared, url_tables, engine_of_store
):
    assert shared.rows(engine_of_store, VECTORS) == url_tables.latest(VECTORS)


@pytest.mark.component(DUCKDB)
def test_an_earlier_version_is_read(shared, url_tables, engine_of_store):
    for version in range(1, url_tables.version(FEED) + 1):
        assert shared.rows(engine_of_store, FEED, version=version) == url_tables.at(FEED, version)


@pytest.mark.component(DUCKDB)
@pytest.mark.parametrize("url_share", [GCS_RSA_STORE], indirect=True)
def test_an_engine_that_cannot_open_the_directory_falls_back_to_urls(shared, url_tables):
    """delta-rs takes no token for Google's store, so the directory that is shared, too, cannot be opened."""
    for engine in ("arrow", "polars", "duckdb"):
        assert shared.rows(engine, ODD, mode="auto") == url_tables.latest(ODD), engine
