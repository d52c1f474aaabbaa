from __future__ import annotations

from gateway.demo.s3_access import Keys
from gateway.demo.s3_sample import S3_TABLES, to_schema, to_storage
from gateway.domain.location import parse_location

KEYS = Keys(access_key_id="GATEWAY1", secret_access_key="secret")


def test_tables_are_shared_by_urls_and_as_directories_with_all_of_their_history():
    tables = to_schema()["tables"]
    assert [table["name"] for table in tables] == ["orders", "orders_archive", "customers"]
    assert all(table["accessModes"] == ["url", "dir"] and table["historyShared"] for table in tables)


def test_one_table_has_a_sibling_whose_name_begins_alike():
    first, second = (parse_location(table["location"]) for table in to_schema()["tables"][:2])
    assert second.path.startswith(first.path)
    assert not first.covers(second)


def test_tables_lie_below_the_storage():
    prefix = parse_location(to_storage("http://127.0.0.1:1", "us-east-1", KEYS)["prefix"])
    for table, entry in zip(S3_TABLES, to_schema()["tables"], strict=True):
        assert prefix.below(parse_location(entry["location"])) == table.key


def test_storage_names_the_gateways_own_identity():
    options = to_storage("http://127.0.0.1:1", "us-east-1", KEYS)["options"]
    assert options["identity"] == {
        "kind": "keys",
        "accessKeyId": "GATEWAY1",
        "secretAccessKey": {"value": "secret"},
    }
