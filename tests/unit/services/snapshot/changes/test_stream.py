from __future__ import annotations

import pytest

from gateway.errors import InvalidArgument, Unavailable, Unsupported
from gateway.services.snapshot.changes.stream import open_stream
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import add, cdc, numbers, remove
from tests.fakes.log_reader import FakeLogReader
from tests.unit.services.snapshot.changes.answers import (
    BOTH,
    DELTA,
    EXPIRATION,
    asked_of,
    source_of,
    stream,
    time_of,
)

_SIZED = {"size": 7, "partitionValues": {}}
_VECTOR = {
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 40,
    "cardinality": 6,
}
_VECTORS = {"minReaderVersion": 3, "minWriterVersion": 7}
_WITH_VECTORS = {**_VECTORS, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}


@pytest.fixture
def table(tmp_path):
    """Version 0 adds a and b, 1 rewrites a, 2 takes b away, 3 changes the metadata and adds d."""
    table = numbers(tmp_path).commit(add("a"), add("b"))
    table.commit(remove("a", dataChange=False, **_SIZED), add("c", dataChange=False))
    table.commit(remove("b", **_SIZED))
    return table.commit(
        {"metaData": {**table.metadata, "description": "new"}}, add("d", stats='{"numRecords":1}')
    )


async def test_files_are_told_version_by_version_but_for_those_that_only_hold_the_same_data(table):
    answer = await stream(table, 0, 3)

    assert answer.files == [("add", "a", 0), ("add", "b", 0), ("remove", "b", 2), ("add", "d", 3)]
    assert answer.stopped_at is None


async def test_a_range_includes_both_ends_and_nothing_else(table):
    assert (await stream(table, 1, 2)).files == [("remove", "b", 2)]


async def test_a_range_without_a_data_change_has_a_head_and_no_page(table):
    answer = await stream(table, 1, 1)

    assert answer.pages == []
    assert answer.head.version == 1


async def test_every_file_in_parquet_has_version_timestamp_and_what_clients_insist_on(table):
    answer = await stream(table, 2, 3)

    assert [line for line in answer.lines if "metaData" not in line] == [
        {
            "remove": {
                "url": "https://0/b",
                "id": "92eb5ffee6ae2fec3ad71c777531578f",
                "version": 2,
                "timestamp": time_of(2),
                "expirationTimestamp": EXPIRATION,
                "partitionValues": {},
                "size": 7,
            }
        },
        {
            "add": {
                "url": "https://0/d",
                "id": "8277e0910d750195b448797616e091ad",
                "version": 3,
                "timestamp": time_of(3),
                "expirationTimestamp": EXPIRATION,
                "partitionValues": {},
                "size": 1,
                "stats": '{"numRecords":1}',
            }
        },
    ]


async def test_every_file_in_delta_has_version_timestamp_and_a_remove_its_size(table):
    answer = await stream(table, 2, 3, capabilities=DELTA)

    removed, added = (line["file"] for line in answer.lines if "file" in line)
    assert (removed["version"], removed["timestamp"]) == (2, time_of(2))
    assert removed["deltaSingleAction"]["remove"] == {
        "path": "https://0/b",
        "partitionValues": {},
        "size": 7,
        "dataChange": True,
        "deletionTimestamp": 0,
    }
    assert (added["version"], added["timestamp"]) == (3, time_of(3))
    assert {"size", "modificationTime", "dataChange", "partitionValues"} <= set(
        added["deltaSingleAction"]["add"]
    )


async def test_change_data_is_not_told(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit(cdc("_change_data/x"), remove("a", **_SIZED), add("b"))

    assert (await stream(table, 1, 1)).files == [("add", "b", 1), ("remove", "a", 1)]


@pytest.mark.parametrize("capabilities", [None, DELTA])
async def test_the_head_is_of_the_starting_version_and_later_metadata_stands_among_the_files(
    table, capabilities
):
    answer = await stream(table, 1, 3, capabilities=capabilities)

    assert answer.head.version == 1
    assert answer.metadata["version"] == 1
    described = answer.metadata.get("deltaMetadata", answer.metadata)
    assert "description" not in described
    [later] = [line["metaData"] for line in answer.lines if "metaData" in line]
    assert later["version"] == 3
    assert later.get("deltaMetadata", later)["description"] == "new"


async def test_the_metadata_of_the_starting_version_is_told_once(table):
    answer = await stream(table, 3, 3)

    assert answer.metadata["description"] == "new"
    assert [next(iter(line)) for line in answer.lines] == ["add"]


async def test_protocols_are_told_only_to_those_who_ask(tmp_path):
    table = numbers(tmp_path).commit(add("a")).upgrade(minReaderVersion=1, minWriterVersion=4)
    table.commit(add("b"))

    silent = await stream(table, 0, 2, capabilities=DELTA)
    told = await stream(table, 0, 2, capabilities=DELTA, with_protocol=True)

    assert [next(iter(line)) for line in silent.lines] == ["file", "file"]
    assert silent.protocol == {"deltaProtocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
    assert told.protocol == {"deltaProtocol": {"minReaderVersion": 1, "minWriterVersion": 2}, "version": 0}
    assert told.lines[1] == {
        "protocol": {"deltaProtocol": {"minReaderVersion": 1, "minWriterVersion": 4}, "version": 1}
    }


async def test_a_version_with_other_metadata_tells_no_protocol_that_it_did_not_change(tmp_path):
    table = numbers(tmp_path).commit(add("a"))
    table.commit({"metaData": {**table.metadata, "name": "other"}}, add("b"))

    answer = await stream(table, 0, 1, capabilities=DELTA, with_protocol=True)

    assert [next(iter(line)) for line in answer.lines] == ["file", "metaData", "file"]


async def test_protocols_are_never_told_in_parquet(tmp_path):
    table = numbers(tmp_path).commit(add("a")).upgrade(minReaderVersion=1, minWriterVersion=4)

    answer = await stream(table, 0, 1, with_protocol=True)

    assert answer.protocol == {"minReaderVersion": 1}
    assert [next(iter(line)) for line in answer.lines] == ["add"]


async def test_a_client_without_capabilities_is_answered_in_parquet(table):
    assert (await stream(table, 0, 3)).head.response_format == pb.RESPONSE_FORMAT_PARQUET


async def test_a_client_of_both_formats_gets_parquet_where_the_whole_range_allows_it(table):
    assert (await stream(table, 0, 3, capabilities=BOTH)).head.response_format == pb.RESPONSE_FORMAT_PARQUET


async def test_a_feature_that_comes_up_within_the_range_is_refused_before_the_first_line(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit({"protocol": _WITH_VECTORS})
    table.commit({"metaData": {**table.metadata, "configuration": {"delta.enableDeletionVectors": "true"}}})

    assert (await stream(table, 0, 1)).files == [("add", "a", 0)]
    with pytest.raises(Unsupported, match="deletionVectors"):
        await stream(table, 0, 2)
    with pytest.raises(Unsupported, match="deletionVectors"):
        await stream(table, 0, 2, capabilities=BOTH)


async def test_a_client_of_both_formats_gets_delta_where_a_part_of_the_range_needs_it(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit({"protocol": _WITH_VECTORS})
    table.commit({"metaData": {**table.metadata, "configuration": {"delta.enableDeletionVectors": "true"}}})
    known = pb.ReaderCapabilities(response_formats=BOTH.response_formats, reader_features=["deletionvectors"])

    answer = await stream(table, 0, 2, capabilities=known)

    assert answer.head.response_format == pb.RESPONSE_FORMAT_DELTA


@pytest.mark.parametrize(
    "action", [add("a", deletionVector=_VECTOR), remove("a", deletionVector=_VECTOR, **_SIZED)]
)
async def test_a_deletion_vector_is_refused_in_parquet_and_told_in_delta(tmp_path, action):
    table = numbers(tmp_path, protocol=_WITH_VECTORS).create().commit(action)
    known = pb.ReaderCapabilities(
        response_formats=[pb.RESPONSE_FORMAT_DELTA], reader_features=["deletionvectors"]
    )

    with pytest.raises(Unsupported, match="deletionVectors"):
        await stream(table, 0, 1)
    [line] = (await stream(table, 0, 1, capabilities=known)).lines
    [told] = line["file"]["deltaSingleAction"].values()
    assert told["deletionVector"] == _VECTOR


async def test_the_answer_is_the_same_whether_there_is_a_checkpoint_or_not(table):
    before = await stream(table, 1, 3)

    table.checkpoint()

    assert await stream(table, 1, 3) == before


async def test_the_answer_is_the_same_after_what_came_before_it_was_cleaned_up(table):
    before = await stream(table, 3, 3)

    table.checkpoint().clean_up(before=3)

    assert await stream(table, 3, 3) == before


async def test_a_commit_that_was_cleaned_up_is_told_with_the_earliest_version_that_is_left(table):
    table.checkpoint().commit(add("e")).clean_up(before=3)

    with pytest.raises(InvalidArgument, match=r"changes of version 2; the earliest available version is 3"):
        await stream(table, 1, 4)


async def test_a_commit_that_is_cleaned_up_meanwhile_is_told(table):
    reader = FakeLogReader()
    source = await source_of(table, reader)
    reader.gone.add("00000000000000000001.json")

    with pytest.raises(InvalidArgument, match="changes of version 1; the earliest available version is 2"):
        await open_stream(source, asked_of(0, 3))


@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content + b"\n"])
async def test_a_commit_that_is_not_as_it_was_listed_is_never_half_told(table, change):
    source = await source_of(table)
    commit = table.log / "00000000000000000002.json"
    commit.write_bytes(change(commit.read_bytes()))

    with pytest.raises(Unavailable, match=r"00000000000000000002\.json is not as long as it is listed"):
        await open_stream(source, asked_of(0, 3))


async def test_a_damaged_commit_is_named_before_the_first_line(table):
    (table.log / "00000000000000000002.json").write_bytes(b'{"add":')

    source = await source_of(table.checkpoint())

    with pytest.raises(Unsupported, match=r"log is damaged: 00000000000000000002\.json"):
        await open_stream(source, asked_of(0, 3))


async def test_a_file_outside_of_the_table_is_refused_before_the_first_line(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit(add("s3://elsewhere/x"))

    with pytest.raises(Unsupported, match="s3://elsewhere"):
        await open_stream(await source_of(table), asked_of(0, 1))


async def test_a_file_that_is_not_told_need_not_be_servable(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit(add("s3://elsewhere/x", dataChange=False))

    assert (await stream(table, 0, 1)).files == [("add", "a", 0)]


async def test_what_a_remove_does_not_say_is_taken_from_where_the_file_was_added(tmp_path):
    table = numbers(tmp_path).commit(add("a", size=11), add("b", size=12, partitionValues={"p": "1"}))
    table.commit(add("c", size=13), add("d", size=14)).commit(remove("b"), remove("c"))
    table.commit(remove("d", size=15))

    answer = await stream(table, 1, 3)

    removed = [line["remove"] for line in answer.lines if "remove" in line]
    assert [(one["size"], one["partitionValues"]) for one in removed] == [
        (12, {"p": "1"}),
        (13, {}),
        (15, {}),
    ]


async def test_a_remove_of_which_nothing_is_known_is_refused_before_the_first_line(tmp_path):
    table = numbers(tmp_path).commit(add("a")).commit(remove("x"))

    with pytest.raises(Unsupported, match="does not say how large a file is"):
        await open_stream(await source_of(table), asked_of(0, 1))


async def test_the_starting_version_is_not_read_whole_where_nothing_changed_since(table):
    table.commit(add("e")).commit(add("f"))
    reader = FakeLogReader()
    source = await source_of(table, reader)
    reader.read.clear()

    await open_stream(source, asked_of(4, 5))

    assert reader.read == ["00000000000000000004.json", "00000000000000000005.json"]


async def test_what_the_first_version_of_a_range_removes_is_as_large_as_it_was_before(tmp_path):
    table = numbers(tmp_path).commit(add("a", size=11), add("b")).commit(remove("a"), add("c"))

    answer = await stream(table, 1, 1)

    assert [line["remove"]["size"] for line in answer.lines if "remove" in line] == [11]
