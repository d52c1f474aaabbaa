from __future__ import annotations

from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode, Table


def table(start_version: int = 0) -> Table:
    return Table(
        name=TableName("share", "schema", "table"),
        id="1",
        share_id="2",
        location=parse_location("s3://bucket/table"),
        start_version=start_version,
    )


def test_a_table_offers_urls_and_its_latest_version_unless_it_is_said():
    assert table().access_modes == (AccessMode.URL,)
    assert not table().history_shared
    assert table().auxiliary_locations == ()


def test_equal_tables_have_equal_hashes_and_a_changed_one_is_another():
    assert table() == table()
    assert hash(table()) == hash(table())
    assert table() != table(start_version=1)
