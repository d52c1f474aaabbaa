"""A recipient reads tables on every kind of store by URLs, with the engine that he likes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.components import ALL_IN_ONE, CLIENT, DUCKDB
from tests.e2e.recipient_lake import RecipientProcess
from tests.e2e.url_gateway import UrlShare, upload, url_gateway
from tests.e2e.url_stores import GCS_COMPONENTS, STORES, gcs_rsa_store
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
    """An engine for each store, and each for three: for what depends on the store or on the engine alone."""
    names = [store.id for store in STORES]
    return ("arrow", "polars", "duckdb")[names.index(url_share.store.name) % 3]


@pytest.mark.parametrize("table", [ODD, AWKWARD_KEYS])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_reads_the_rows_that_were_written(shared, url_tables, engine, table):
    assert shared.rows(engine, table) == url_tables.latest(table)


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


@pytest.fixture
def with_directory(request, tmp_path, url_tables) -> Iterator[str]:
    """The address of a table on Google's store that is shared as a directory, too."""
    with gcs_rsa_store(request, tmp_path) as store:
        upload(url_tables, store, [ODD])
        both = {"name": ODD, "accessModes": ["url", "dir"]}
        with url_gateway(tmp_path, [store], [both]) as gateway:
            yield gateway.address(store.name, ODD)


@pytest.mark.component(*GCS_COMPONENTS, DUCKDB)
@pytest.mark.system
def test_an_engine_that_cannot_open_the_directory_falls_back_to_urls(with_directory, url_reader, url_tables):
    """delta-rs takes no token for Google's store, so the directory that is shared, too, cannot be opened."""
    for engine in ("arrow", "polars", "duckdb"):
        rows = url_reader.call("rows", engine, with_directory, mode="auto")
        assert rows == url_tables.latest(ODD), engine
