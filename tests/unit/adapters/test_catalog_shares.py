from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from gateway.adapters.catalog_index import ShareIndex
from gateway.adapters.catalog_shares import ShareReader
from gateway.adapters.catalog_yaml import build_index
from gateway.adapters.view_index import CatalogShowings
from gateway.config.faults import Fault
from gateway.config.schema import Config, ShareConfig
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode, Table
from tests.cases import each_case

FRESHNESS = timedelta(seconds=7)


def read(*shares: dict[str, object]) -> tuple[dict[str, ShareIndex], list[Fault]]:
    faults: list[Fault] = []
    index = ShareReader(faults, FRESHNESS).read(ShareConfig.model_validate(share) for share in shares)
    return index, faults


def read_table(table: dict[str, object], **share: object) -> Table:
    entry = {"name": "t", "location": "s3://bucket/t"} | table
    index, faults = read({"name": "s", "schemas": [{"name": "main", "tables": [entry]}], **share})
    assert not faults
    (found,) = index["s"].all_tables.items
    return found


def test_ids_that_are_given_are_kept():
    table = read_table({"id": "table-id"}, id="share-id")
    assert (table.id, table.share_id) == ("table-id", "share-id")


def test_ids_that_are_not_given_are_uuids_that_never_change():
    table = read_table({})
    assert (table.share_id, table.id) == (
        "b5d26bfc-a539-5cbb-97ad-fbce1f121d06",
        "ba7ff0f3-d766-5eb9-9f4f-525195dcebee",
    )
    assert uuid.UUID(table.id).version == 5


def test_the_id_of_a_name_does_not_depend_on_its_case():
    lower, _ = read({"name": "a", "schemas": [{"name": "b", "tables": [{"name": "c", "location": "/c"}]}]})
    upper, _ = read({"name": "A", "schemas": [{"name": "B", "tables": [{"name": "C", "location": "/c"}]}]})
    assert lower["a"].share.id == upper["a"].share.id
    assert lower["a"].all_tables.items[0].id == upper["a"].all_tables.items[0].id


def test_ids_differ_between_shares_and_tables_and_between_all_names():
    def share(name: str, schema: str, *tables: str) -> dict[str, object]:
        entries = [{"name": table, "location": "/x"} for table in tables]
        return {"name": name, "schemas": [{"name": schema, "tables": entries}]}

    # A share may contain periods: this one is spelled like a table.
    index, _ = read(share("a", "b", "c", "d"), share("a.b.c", "b", "c"), share("a.b", "c", "d"))
    ids = [each.share.id for each in index.values()]
    ids += [table.id for each in index.values() for table in each.all_tables.items]
    assert len(set(ids)) == len(ids) == 7


def test_a_location_keeps_its_spelling():
    table = read_table({"location": "s3a://bucket/t/", "auxiliaryLocations": ["s3n://other/x", "/y"]})
    assert table.location.text == "s3a://bucket/t"
    assert [location.text for location in table.auxiliary_locations] == ["s3n://other/x", "/y"]


def test_a_view_knows_all_places_of_the_tables_that_it_reads():
    table = {"name": "t", "location": "s3://lake/t", "auxiliaryLocations": ["s3://lake/base"]}
    view = {"name": "v", "from": "s.d.t", "location": "s3://lake/v"}
    schema = {"name": "d", "tables": [table], "views": [view]}
    index = build_index(Config.model_validate({"shares": [{"name": "s", "schemas": [schema]}]}))
    shown = next(CatalogShowings(lambda: index).of_view(TableName("s", "d", "v")))
    (source,) = shown.view.sources
    assert [location.text for location in source.locations] == ["s3://lake/t", "s3://lake/base"]


def test_every_location_that_is_none_is_reported_with_its_path():
    tables = [
        {"name": "a", "location": "s3://bucket/../a"},
        {"name": "b", "location": "/b", "auxiliaryLocations": ["/x", "ftp://x"]},
    ]
    _, faults = read({"name": "s", "schemas": [{"name": "main", "tables": tables}]})
    assert [fault.path for fault in faults] == [
        "shares[0].schemas[0].tables[0].location",
        "shares[0].schemas[0].tables[1].auxiliaryLocations[1]",
    ]


URL, DIR = AccessMode.URL, AccessMode.DIR


@each_case(
    ("own", "inherited", "expected"),
    [
        (None, None, (URL,)),
        (None, ["dir"], (DIR,)),
        (None, ["url", "dir"], (URL, DIR)),
        (["url"], ["url", "dir"], (URL,)),
        (["dir", "url"], None, (DIR, URL)),
    ],
)
def test_access_modes_are_the_table_s_own_or_its_share_s_or_url(own, inherited, expected):
    table = read_table({"accessModes": own, "historyShared": True}, accessModes=inherited)
    assert table.access_modes == expected


@pytest.mark.parametrize("history", [{}, {"historyShared": True, "startVersion": 1}, {"startVersion": 0}])
def test_dir_is_not_offered_for_a_table_that_does_not_share_all_its_history(history):
    assert read_table({"accessModes": ["url", "dir"], **history}).access_modes == (URL,)
    assert read_table(history, accessModes=["url", "dir"]).access_modes == (URL,)


@pytest.mark.parametrize(
    ("entry", "freshness"),
    [({}, FRESHNESS), ({"freshness": "1m"}, timedelta(minutes=1)), ({"freshness": 0}, timedelta(0))],
)
def test_how_old_an_answer_may_be_is_the_table_s_own_or_that_of_all(entry, freshness):
    assert read_table(entry).freshness == freshness


def test_history_and_its_start_are_kept():
    table = read_table({"historyShared": True, "startVersion": 5})
    assert (table.history_shared, table.start_version) == (True, 5)
