from __future__ import annotations

import json
from dataclasses import replace
from hashlib import md5

import pytest

from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.changes.feed import open_feed, require_feed
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import NUMBERS, TableBuilder, add, cdc, numbers, remove
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.changes.answers import (
    DELTA,
    EXPIRATION,
    FEED_ON,
    FEED_PROTOCOL,
    asked_of,
    feed,
    source_of,
    time_of,
)

_SIZED = {"size": 7, "partitionValues": {}}
_IDLE = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}


def feeding(directory) -> TableBuilder:
    return numbers(directory, protocol=FEED_PROTOCOL, metadata=FEED_ON)


def schema_of(*columns: tuple[str, str]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields})


@pytest.fixture
def table(tmp_path):
    """Version 0 inserts, 1 updates, 2 rewrites, 3 deletes."""
    table = feeding(tmp_path).commit(add("a"))
    table.commit(remove("a", **_SIZED), add("b"), cdc("_change_data/b"))
    table.commit(remove("b", dataChange=False, **_SIZED), add("c", dataChange=False))
    return table.commit(remove("c", **_SIZED))


async def test_change_data_takes_the_place_of_what_its_commit_adds_and_removes(table):
    answer = await feed(table, 0, 3)

    assert answer.files == [("add", "a", 0), ("cdf", "_change_data/b", 1), ("remove", "c", 3)]
    assert answer.head.version == 0
    assert answer.head.response_format == pb.RESPONSE_FORMAT_PARQUET


async def test_change_data_in_parquet_has_version_and_timestamp(table):
    assert (await feed(table, 1, 1)).lines == [
        {
            "cdf": {
                "url": "https://0/_change_data/b",
                "id": md5(b"_change_data/b", usedforsecurity=False).hexdigest(),
                "version": 1,
                "timestamp": time_of(1),
                "expirationTimestamp": EXPIRATION,
                "partitionValues": {},
                "size": 1,
            }
        }
    ]


async def test_change_data_in_delta_is_a_cdc_action_without_a_deletion_vector(table):
    [line] = (await feed(table, 1, 1, capabilities=DELTA, with_metadata=True)).lines

    assert (line["file"]["version"], line["file"]["timestamp"]) == (1, time_of(1))
    assert line["file"]["deltaSingleAction"] == {
        "cdc": {
            "path": "https://0/_change_data/b",
            "partitionValues": {},
            "size": 1,
            "dataChange": False,
        }
    }


async def test_a_merge_that_changed_no_row_tells_of_no_file(tmp_path):
    table = feeding(tmp_path).commit(add("a"))
    table.commit(
        {"commitInfo": {"operation": "MERGE", "operationMetrics": _IDLE}}, remove("a", **_SIZED), add("b")
    )

    assert (await feed(table, 0, 1)).files == [("add", "a", 0)]


async def test_without_historical_metadata_the_head_is_of_the_last_version_and_the_only_metadata(table):
    table.describe(description="new", schemaString=schema_of(("number", "long"), ("more", "string")))
    table.commit(add("e")).describe(description="newer")

    answer = await feed(table, 0, 5)

    assert answer.head.version == 0
    assert answer.metadata["description"] == "new"
    assert "version" not in answer.metadata
    assert not any("metaData" in line for line in answer.lines)


@pytest.mark.parametrize("capabilities", [None, DELTA])
async def test_with_historical_metadata_the_head_is_of_the_first_version_and_all_have_versions(
    table, capabilities
):
    table.describe(description="new")

    answer = await feed(table, 0, 4, capabilities=capabilities, with_metadata=True)

    assert answer.metadata["version"] == 0
    assert "description" not in answer.metadata.get("deltaMetadata", answer.metadata)
    [later] = [line["metaData"] for line in answer.lines if "metaData" in line]
    assert later["version"] == 4


async def test_in_delta_no_protocol_stands_among_the_files_unless_asked_for(table):
    table.upgrade(minReaderVersion=1, minWriterVersion=5)

    silent = await feed(table, 0, 4, capabilities=DELTA, with_metadata=True)
    told = await feed(table, 0, 4, capabilities=DELTA, with_metadata=True, with_protocol=True)

    assert {next(iter(line)) for line in silent.lines} == {"file"}
    assert told.protocol["version"] == 0
    assert [line["protocol"]["version"] for line in told.lines if "protocol" in line] == [4]


async def test_the_delta_head_keeps_the_writer_version_that_says_there_is_a_feed(table):
    answer = await feed(table, 0, 3, capabilities=DELTA, with_metadata=True)

    assert answer.protocol == {"deltaProtocol": {"minReaderVersion": 1, "minWriterVersion": 4}}


def test_a_table_that_is_shared_without_history_has_no_feed():
    with pytest.raises(InvalidArgument, match=r"cdf is not enabled on table retail\.sales\.orders"):
        require_feed(replace(GRANT, history_shared=False))


async def test_a_table_that_is_shared_without_history_is_not_read(table):
    source = await source_of(table, history_shared=False)

    with pytest.raises(InvalidArgument, match=r"cdf is not enabled on table retail\.sales\.orders"):
        await open_feed(source, asked_of(0, 3))


async def test_a_feed_that_was_never_on_is_told(tmp_path):
    table = numbers(tmp_path).commit(add("a"))

    with pytest.raises(InvalidArgument, match=r"cdf is not enabled on table retail\.sales\.orders"):
        await feed(table, 0, 0)


async def test_a_feed_that_was_off_at_the_start_is_told_with_the_version(tmp_path):
    table = numbers(tmp_path, protocol=FEED_PROTOCOL).commit(add("a")).describe(**FEED_ON).commit(add("b"))

    with pytest.raises(InvalidArgument, match=r"cdf is not enabled .* from version 0 on"):
        await feed(table, 0, 2)
    assert (await feed(table, 1, 2)).files == [("add", "b", 2)]


async def test_a_feed_that_was_turned_off_within_the_range_is_told_with_the_version(table):
    table.describe(configuration={}).describe(**FEED_ON)

    with pytest.raises(InvalidArgument, match=r"cdf is not enabled .* from version 4 on"):
        await feed(table, 0, 5, with_metadata=True)
    assert (await feed(table, 0, 3)).files
    assert (await feed(table, 5, 5)).files == []


async def test_that_the_feed_is_off_is_told_before_what_is_wrong_with_a_file(tmp_path):
    table = numbers(tmp_path).commit(add("s3://elsewhere/x"))

    with pytest.raises(InvalidArgument, match="cdf is not enabled"):
        await feed(table, 0, 0)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([("other", "long")], "column 'number' was dropped or renamed"),
        ([("number", "string")], "the type of column 'number' changed"),
    ],
)
async def test_a_schema_that_is_incompatible_within_the_range_is_refused(table, columns, reason):
    table.describe(schemaString=schema_of(*columns)).commit(add("d"))

    with pytest.raises(Unsupported, match=f"version 0 through version 4, as {reason}"):
        await feed(table, 0, 5)
    assert (await feed(table, 0, 3)).files
    assert (await feed(table, 4, 5)).files == [("add", "d", 5)]


async def test_a_schema_that_changes_there_and_back_is_refused(table):
    table.describe(schemaString=schema_of(("number", "string"))).describe(
        schemaString=schema_of(("number", "long"))
    )

    with pytest.raises(Unsupported, match="version 4 through version 5"):
        await feed(table, 0, 5)


async def test_a_schema_that_grows_within_the_range_is_served_with_the_last_one(table):
    table.describe(schemaString=schema_of(("number", "long"), ("more", "string"))).commit(add("d"))

    answer = await feed(table, 0, 5)

    assert "more" in answer.metadata["schemaString"]
    assert answer.files[-1] == ("add", "d", 5)


async def test_who_asks_for_historical_metadata_decides_about_schemas(table):
    table.describe(schemaString=schema_of(("other", "long")))

    answer = await feed(table, 0, 4, with_metadata=True)

    assert [line["metaData"]["schemaString"] for line in answer.lines if "metaData" in line] == [
        schema_of(("other", "long"))
    ]


async def test_a_deletion_vector_that_replaces_another_is_told_by_both_actions_in_delta(tmp_path):
    features = {
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 40, "cardinality": 6}
    table = TableBuilder(
        tmp_path / "numbers",
        NUMBERS,
        protocol={"minReaderVersion": 3, "minWriterVersion": 7, **features},
        metadata=FEED_ON,
    )
    table.commit(add("a")).commit(remove("a", **_SIZED), add("a", deletionVector=vector))
    known = pb.ReaderCapabilities(
        response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=["deletionvectors"]
    )

    answer = await feed(table, 0, 1, capabilities=known, with_metadata=True)

    assert answer.files == [("add", "a", 0), ("add", "a", 1), ("remove", "a", 1)]
    assert "deletionVector" in answer.lines[1]["file"]["deltaSingleAction"]["add"]
    assert "deletionVector" not in answer.lines[2]["file"]["deltaSingleAction"]["remove"]
    with pytest.raises(Unsupported, match="deletionVectors"):
        await feed(table, 0, 1)
    assert (await feed(table, 0, 0)).files == [("add", "a", 0)]
