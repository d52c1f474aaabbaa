"""The official client reads what the sample's builder wrote, from one process and from five."""

from __future__ import annotations

import pytest

from gateway.demo.sample import SHARE
from gateway.demo.sample_tables import SAMPLE_TABLES
from tests.components import CLIENT, DELTALAKE
from tests.e2e.conftest import PAGES_SCHEMA, SEVERAL_PAGES
from tests.e2e.official_client import ClientError

pytestmark = pytest.mark.component(CLIENT)

BY_NAME = {table.name: table for table in SAMPLE_TABLES}
# The client reads one file after the other, and this table takes it minutes: for a release only.
LARGE = BY_NAME["ten_thousand_files"]
# What the parquet format cannot express.
NEED_DELTA = {"deletion_vectors", "column_mapping"}
every_table = pytest.mark.parametrize("table", SAMPLE_TABLES, ids=lambda table: table.name)
every_table_but_the_large_one = pytest.mark.parametrize(
    "table", [table for table in SAMPLE_TABLES if table is not LARGE], ids=lambda table: table.name
)
PAGED = f"{SHARE}.{PAGES_SCHEMA}.{SEVERAL_PAGES}"


def full_name(table):
    return f"{SHARE}.{table.schema}.{table.name}"


def test_list_shares_names_the_granted_share(served):
    assert served.ask("list_shares") == [SHARE]


def test_list_schemas_names_each_schema_once(served):
    assert sorted(served.ask("list_schemas", SHARE)) == sorted(
        {PAGES_SCHEMA, *(table.schema for table in SAMPLE_TABLES)}
    )


def test_list_tables_names_the_tables_of_a_schema(served):
    expected = sorted(table.name for table in SAMPLE_TABLES if table.schema == "sales")
    assert sorted(served.ask("list_tables", SHARE, "sales")) == expected


def test_list_all_tables_names_every_table(served):
    assert sorted(served.ask("list_all_tables")) == sorted([PAGED, *map(full_name, SAMPLE_TABLES)])


@every_table
@pytest.mark.component(DELTALAKE)
def test_version_is_the_latest_of_the_log(served, sample, table):
    assert served.ask("get_table_version", full_name(table)) == sample.describe(table)["version"]


def test_version_at_a_timestamp_is_the_first_commit_after_it(served):
    # The builder makes a commit an hour, from midnight on.
    answer = served.ask(
        "get_table_version", "sample.sales.inventory", starting_timestamp="2024-01-01T01:30:00Z"
    )
    assert answer == 2


@every_table
@pytest.mark.component(DELTALAKE)
@pytest.mark.parametrize("use_delta_format", [True, False], ids=["auto", "parquet"])
def test_metadata_is_that_of_the_log(served, sample, table, use_delta_format):
    if table.name in NEED_DELTA and not use_delta_format:
        with pytest.raises(ClientError, match="Unsupported Delta Table Properties"):
            served.ask("get_table_metadata", full_name(table), use_delta_format=False)
        return
    metadata = served.ask("get_table_metadata", full_name(table), use_delta_format=use_delta_format)
    log = sample.describe(table)
    assert metadata["provider"] == "parquet"
    assert metadata["id"] == log["id"]
    assert metadata["schema"] == log["schema"]
    assert metadata["partition_columns"] == log["partition_columns"]


def test_protocol_is_that_of_a_plain_table(served):
    protocol = served.ask("get_table_protocol", "sample.sales.orders", use_delta_format=False)
    assert protocol["min_reader_version"] == 1


@every_table_but_the_large_one
@pytest.mark.component(DELTALAKE)
def test_load_as_pandas_reads_what_is_in_the_directory(served, sample, table):
    loaded = served.ask("load_as_pandas", full_name(table))
    kept = sample.read(table)
    assert loaded["columns"] == kept["columns"]
    assert loaded["rows"] == kept["rows"]


@pytest.mark.component(DELTALAKE)
@pytest.mark.parametrize("use_delta_format", [True, False], ids=["delta", "parquet"])
def test_load_as_pandas_of_a_listing_of_several_pages_reads_every_file(
    served, several_pages, official_client, use_delta_format
):
    """The cheap proof that no file is lost between pages; ten thousand files are read for a release."""
    loaded = served.ask("load_as_pandas", PAGED, use_delta_format=use_delta_format)
    kept = official_client.call("read_directory", several_pages)
    assert loaded["columns"] == kept["columns"]
    assert len(loaded["rows"]) == 80
    assert loaded["rows"] == kept["rows"]


@pytest.mark.release
@pytest.mark.component(DELTALAKE)
def test_load_as_pandas_of_ten_thousand_files_reads_every_file(served, sample):
    loaded, kept = served.ask("load_as_pandas", full_name(LARGE)), sample.read(LARGE)
    assert loaded["columns"] == kept["columns"]
    assert len(loaded["rows"]) == 20_000
    assert loaded["rows"] == kept["rows"]


def test_every_one_of_ten_thousand_files_is_listed(served):
    files = served.ask("list_files", full_name(LARGE))
    assert len(files) == 10_000
    assert len({values for values, _ in files}) == 100


@every_table
@pytest.mark.component(DELTALAKE)
def test_load_as_pandas_with_a_limit_reads_no_more(served, sample, table):
    rows = served.ask("load_as_pandas", full_name(table), limit=3)["rows"]
    kept = sample.read(table)["rows"] if table is not LARGE else sample.read_days(LARGE, rows)["rows"]
    assert len(rows) == min(3, len(kept))
    assert set(rows) <= set(kept)


@pytest.mark.component(DELTALAKE)
@pytest.mark.parametrize("version", range(5))
def test_load_as_pandas_travels_to_every_version_of_a_table_with_history(served, sample, version):
    table = BY_NAME["inventory"]
    loaded = served.ask("load_as_pandas", full_name(table), version=version)
    assert loaded["rows"] == sample.read(table, version=version)["rows"]


def test_load_as_pandas_at_a_timestamp_reads_the_version_of_that_time(served):
    at = served.ask("load_as_pandas", "sample.sales.inventory", timestamp="2024-01-01T01:30:00Z")
    assert at == served.ask("load_as_pandas", "sample.sales.inventory", version=1)


def test_time_travel_on_a_table_without_history_is_refused_in_words(served):
    with pytest.raises(ClientError, match="Reading table by version or timestamp is not supported"):
        served.ask("load_as_pandas", "sample.sales.orders", version=0)


def test_a_table_that_was_not_granted_is_not_found(served):
    with pytest.raises(ClientError, match=r"(?s)404.*RESOURCE_DOES_NOT_EXIST"):
        served.ask("load_as_pandas", "sample.sales.secrets")
