from __future__ import annotations

import hashlib
import json
import os
from datetime import timedelta

import polars as pl
import pytest

from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.log import commit_name
from gateway.domain.table import AccessMode
from gateway.errors import GatewayError, InvalidArgument, Unauthenticated, Unsupported
from gateway.ports import Storage
from gateway.services.snapshot.answer.batch import MAX_FILES
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import STARTED_AT, Field, TableBuilder, add, numbers, rows, with_features
from tests.fakes.storages import FakeStorages
from tests.unit.services.snapshot.world import (
    BOTH,
    CONTEXT,
    DELTA,
    NOTHING,
    PARQUET,
    World,
    at_time,
    at_version,
    iso,
    path_of,
)


@pytest.fixture
def world():
    return World()


@pytest.fixture
def table(tmp_path):
    return numbers(tmp_path).append(rows([1, 2])).append(rows([3])).append(rows([4]))


def metadata_of(head: pb.TableHead):
    return json.loads(head.lines.splitlines()[1])["metaData"]


async def test_the_version_is_the_latest(world, table):
    assert await world.version(table) == 2


async def test_the_metadata_is_that_of_the_latest_version(world, table):
    head = await world.metadata(table)

    assert (head.version, head.response_format) == (2, pb.RESPONSE_FORMAT_PARQUET)
    fields = metadata_of(head)
    assert fields["numFiles"] == 3
    assert fields["size"] == sum(file["size"] for file in table.live.values())
    assert fields["schemaString"] == table.metadata["schemaString"]
    assert fields["location"] == str(table.directory)
    assert "version" not in fields


async def test_a_query_starts_with_the_bytes_of_the_metadata(world, table):
    head = (await world.query(table)).head
    asked = await world.metadata(table)

    assert head.lines == asked.lines
    assert (head.version, head.response_format) == (asked.version, asked.response_format)


async def test_a_query_returns_the_live_files_in_order(world, table):
    files = (await world.query(table)).files

    assert [file["id"] for file in files] == [hashlib.md5(path.encode()).hexdigest() for path in table.live]
    assert [file["size"] for file in files] == [file["size"] for file in table.live.values()]
    assert [file["stats"] for file in files] == [file["stats"] for file in table.live.values()]
    assert all("version" not in file and "timestamp" not in file for file in files)


async def test_a_query_by_version_returns_the_files_of_that_version(world, table):
    first = next(iter(table.live))

    [file] = (await world.query(table, at=at_version(0))).files

    assert file["id"] == hashlib.md5(first.encode()).hexdigest()
    assert file["version"] == 0
    assert file["timestamp"] == int(STARTED_AT.timestamp() * 1000)


async def test_the_metadata_of_a_version_says_so(world, table):
    head = await world.metadata(table, at=at_version(1))

    assert head.version == metadata_of(head)["version"] == 1
    assert head.lines == (await world.query(table, at=at_version(1))).head.lines


async def test_a_query_by_timestamp_returns_the_version_of_that_time(world, table):
    head = (await world.query(table, at=at_time(iso(1.5)))).head

    assert head.version == metadata_of(head)["version"] == 1


@pytest.mark.parametrize(("hours", "version"), [(-10, 0), (0, 0), (0.5, 1), (1, 1), (2, 2)])
async def test_the_version_from_a_timestamp_on_is_the_first_at_or_after_it(world, table, hours, version):
    assert await world.version(table, iso(hours)) == version


async def test_the_version_from_a_timestamp_on_is_never_before_the_first_that_is_shared(world, table):
    assert await world.version(table, iso(0), start_version=1) == 1


@pytest.mark.parametrize("text", ["yesterday", "2022-01-01"])
async def test_a_malformed_timestamp_is_refused(world, table, text):
    with pytest.raises(InvalidArgument, match="is not a timestamp"):
        await world.version(table, text)
    with pytest.raises(InvalidArgument, match="is not a timestamp"):
        await world.metadata(table, at=at_time(text))


async def test_a_timestamp_after_the_latest_version_is_refused(world, table):
    with pytest.raises(InvalidArgument, match="is after the latest available version"):
        await world.version(table, iso(3))
    with pytest.raises(InvalidArgument, match="is after the latest available version"):
        await world.metadata(table, at=at_time(iso(3)))


async def test_a_timestamp_before_the_first_version_has_no_data(world, table):
    with pytest.raises(InvalidArgument, match="greater than or equal to 2024-01-01T00:00:00"):
        await world.metadata(table, at=at_time(iso(-1)))


async def test_times_inside_of_commits_are_not_mistaken_for_those_of_the_files(world, tmp_path):
    table = numbers(tmp_path, **with_features("inCommitTimestamp"))
    table.append(rows([1])).append(rows([2]))
    for version in range(2):
        table.touch(version, STARTED_AT - timedelta(days=9))

    assert await world.version(table, iso(0.5)) == 1
    [file] = (await world.query(table, at=at_time(iso(0.5)))).files
    assert (file["version"], file["timestamp"]) == (0, int(STARTED_AT.timestamp() * 1000))


async def test_a_log_without_its_latest_commit_has_no_times(world, table):
    table.checkpoint().clean_up(before=3)

    with pytest.raises(Unsupported, match="no longer holds the commits"):
        await world.version(table, iso(0))
    assert all("timestamp" not in file for file in (await world.query(table, at=at_version(2))).files)


async def test_history_that_is_not_shared_is_not_read(world, table):
    not_supported = "Reading table by version or timestamp is not supported"

    with pytest.raises(Unsupported, match=not_supported):
        await world.version(table, iso(0), history_shared=False)
    with pytest.raises(Unsupported, match=not_supported):
        await world.metadata(table, at=at_version(2), history_shared=False)
    with pytest.raises(Unsupported, match=not_supported):
        await world.query(table, at=at_time(iso(0)), grant={"history_shared": False})
    assert world.reader.listed == []


async def test_versions_before_the_first_that_is_shared_are_not_read(world, table):
    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await world.query(table, at=at_version(1), grant={"start_version": 2})
    with pytest.raises(InvalidArgument, match="You can only query table data since version 2"):
        await world.metadata(table, at=at_time(iso(0.5)), start_version=2)


@pytest.mark.parametrize("hours", [-10, 0, 1.5])
async def test_times_of_versions_that_are_not_shared_are_not_told(world, table, hours):
    with pytest.raises(InvalidArgument) as caught:
        await world.metadata(table, at=at_time(iso(hours)), start_version=2)

    assert caught.value.message == "You can only query table data since version 2"


async def test_nothing_is_shared_of_a_table_that_has_not_come_to_its_first_shared_version(world, table):
    for ask in (
        world.version(table, iso(0), start_version=9),
        world.metadata(table, at=at_time(iso(2)), start_version=9),
    ):
        with pytest.raises(InvalidArgument, match="You can only query table data since version 9"):
            await ask


@pytest.mark.parametrize("version", [-1, 3, 2**62])
async def test_a_version_that_does_not_exist_is_refused(world, table, version):
    with pytest.raises(InvalidArgument, match="version"):
        await world.query(table, at=at_version(version))
    assert world.reader.read == []


async def test_a_version_that_was_cleaned_up_is_refused(world, table):
    table.checkpoint().clean_up(before=2)

    with pytest.raises(Unsupported, match=f"lacks {commit_name(0)}"):
        await world.query(table, at=at_version(1))


async def test_a_limit_cuts_the_files_short(world, table):
    assert len((await world.query(table, limit_hint=3)).files) == 2
    assert len((await world.query(table, limit_hint=0)).files) == 0


async def test_a_negative_limit_is_refused(world, table):
    with pytest.raises(InvalidArgument, match="limitHint"):
        await world.query(table, limit_hint=-1)


async def test_hints_that_mean_nothing_are_ignored(world, table):
    files = (await world.query(table, predicate_hints=["nonsense >"], json_predicate_hints="{")).files

    assert len(files) == 3


async def test_ids_may_be_those_of_the_delta_format(world, table):
    files = (await world.query(table, file_id_hash=pb.FILE_ID_HASH_DELTA)).files

    assert [file["id"] for file in files] == [
        hashlib.sha256(path.encode()).hexdigest() for path in table.live
    ]


async def test_an_unknown_kind_of_id_is_refused(world, table):
    with pytest.raises(InvalidArgument, match="file id hash 9"):
        await world.query(table, file_id_hash=9)


@pytest.mark.parametrize("capabilities", [NOTHING, PARQUET, BOTH])
async def test_who_can_read_parquet_gets_parquet(world, table, capabilities):
    head = await world.metadata(table, capabilities=capabilities)

    assert head.response_format == pb.RESPONSE_FORMAT_PARQUET


async def test_who_can_read_delta_only_gets_delta(world, table):
    answer = await world.query(table, capabilities=DELTA)

    assert answer.head.response_format == pb.RESPONSE_FORMAT_DELTA
    assert answer.head.lines == (await world.metadata(table, capabilities=DELTA)).lines
    assert answer.protocol == {"deltaProtocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert answer.metadata["deltaMetadata"]["schemaString"] == table.metadata["schemaString"]
    assert (answer.metadata["numFiles"], answer.metadata["size"]) == (
        3,
        sum(file["size"] for file in table.live.values()),
    )
    assert {name for name, _ in answer.actions} == {"add"}
    assert [file["id"] for file in answer.files] == [
        hashlib.sha256(path.encode()).hexdigest() for path in table.live
    ]
    for (_, fields), kept in zip(answer.actions, table.live.values(), strict=True):
        assert {**fields, "path": None} == {**kept, "path": None}


async def test_a_table_that_parquet_cannot_express_is_refused_before_its_first_line(world, table):
    table.upgrade(minReaderVersion=3, minWriterVersion=7, readerFeatures=["deletionVectors"])
    table.describe(configuration={"delta.enableDeletionVectors": "true"})

    for ask in (world.metadata(table), world.query(table)):
        with pytest.raises(Unsupported, match="Unsupported Delta Table Properties"):
            await ask
    assert await world.version(table) == 4


async def test_a_table_that_lists_features_and_uses_none_is_served_as_version_one(world, table):
    table.upgrade(minReaderVersion=3, minWriterVersion=7, readerFeatures=["deletionVectors"])

    head = await world.metadata(table)

    assert head.lines.splitlines()[0] == b'{"protocol":{"minReaderVersion":1}}'


@pytest.mark.parametrize("capabilities", [PARQUET, DELTA])
async def test_odd_partition_values_arrive_as_they_are_and_null_as_null(world, tmp_path, capabilities):
    values = ["a b", "50%", "a/b", 'say "hi"', "line\u2028break", "Grüße", "", None]
    table = TableBuilder(tmp_path / "odd", [Field("n", "long"), Field("p", "string")], partition_by=["p"])
    table.append([{"n": n, "p": value} for n, value in enumerate(values)])

    answer = await world.query(table, capabilities=capabilities)

    assert [fields["partitionValues"]["p"] for _, fields in answer.actions] == values
    [page] = answer.pages
    assert page.lines.isascii()
    assert page.groups[0].paths.isascii()


async def test_the_paths_of_a_page_are_those_of_the_files_on_disk(world, tmp_path):
    values = ["a b", "50%", "a/b", "é", "1+1", None]
    table = TableBuilder(tmp_path / "odd", [Field("n", "long"), Field("p", "string")], partition_by=["p"])
    table.append([{"n": n, "p": value} for n, value in enumerate(values)])

    paths = (await world.query(table)).paths

    assert len(paths) == len(values)
    assert all((table.directory / path).is_file() for path in paths)


@pytest.mark.parametrize(
    "path", ["s3://elsewhere/secret/f.parquet", "../secret/f.parquet", "a%2F..%2Fsecret"]
)
async def test_a_file_outside_of_the_table_is_refused_before_the_first_line(world, table, path):
    table.commit(add("fine.parquet"), add(path))

    with pytest.raises(Unsupported) as caught:
        await world.query(table)

    assert "secret" not in caught.value.message
    assert (await world.metadata(table)).version == 3


async def test_a_bad_path_that_was_removed_does_no_harm(world, table):
    table.commit(add("/etc/passwd")).delete_files("/etc/passwd")

    assert len((await world.query(table)).files) == 3


async def test_an_empty_table_has_a_head_and_no_pages(world, tmp_path):
    answer = await world.query(numbers(tmp_path).create())

    assert answer.metadata["numFiles"] == answer.metadata["size"] == 0
    assert answer.pages == []
    assert answer.end == pb.AnswerEnd()


async def test_a_large_table_comes_in_pages(world, tmp_path):
    table = numbers(tmp_path).commit(*(add(f"f{number}") for number in range(2 * MAX_FILES + 1)))

    answer = await world.query(table)

    assert [page.files for page in answer.pages] == [MAX_FILES, MAX_FILES, 1]
    assert answer.paths == list(table.live)


async def test_a_query_keeps_its_version_while_the_table_goes_on(world, tmp_path):
    table = numbers(tmp_path).commit(*(add(f"f{number}") for number in range(2 * MAX_FILES)))
    parts = world.servicer.Query(pb.QueryRequest(grant=world.grant(table)), CONTEXT)
    head = (await anext(parts)).head
    table.delete_files(*list(table.live)[:MAX_FILES])
    assert (await world.query(table)).files

    assert head.version == 0
    assert sum([part.page.files async for part in parts]) == 2 * MAX_FILES
    assert (await world.query(table)).head.version == 1


async def test_a_dir_only_table_answers_metadata_and_version_and_no_query(world, table):
    only_dir = {"access_modes": (AccessMode.DIR,)}

    assert await world.version(table, **only_dir) == 2
    assert metadata_of(await world.metadata(table, **only_dir))["accessModes"] == ["dir"]
    for ask in (
        world.query(table, grant=only_dir),
        world.query(table, starting_version=0, grant=only_dir),
        world.changes(table, start=at_version(0), grant=only_dir),
    ):
        with pytest.raises(Unsupported, match="only dir") as caught:
            await ask
        assert caught.value.error_code == "UNSUPPORTED_OPERATION"


@pytest.mark.parametrize("storages", [(), (Storage(name="no-reader", prefix=parse_location("/")),)])
async def test_a_table_in_no_storage_that_can_be_read_is_refused(world, table, storages):
    servicer = world.serve(FakeStorages(*storages))

    with pytest.raises(Unsupported, match=r"retail\.sales\.orders") as caught:
        await servicer.GetVersion(pb.GetVersionRequest(grant=world.grant(table)), CONTEXT)
    assert str(table.directory) not in caught.value.message


@pytest.mark.parametrize("audience", [Audience.PRESIGN, Audience.VENDING])
async def test_a_grant_for_another_service_opens_nothing(world, table, audience):
    foreign = {"audience": audience}

    for ask in (
        world.version(table, **foreign),
        world.metadata(table, **foreign),
        world.query(table, grant=foreign),
        world.query(table, starting_version=0, grant=foreign),
        world.changes(table, start=at_version(0), grant=foreign),
    ):
        with pytest.raises(Unauthenticated):
            await ask
    assert world.reader.listed == []


async def test_an_expired_grant_opens_nothing(world, table):
    grant = world.grant(table)
    world.grants.now += timedelta(seconds=61)

    with pytest.raises(Unauthenticated):
        await world.servicer.GetVersion(pb.GetVersionRequest(grant=grant), CONTEXT)


@pytest.mark.parametrize("damage", [b"", b"{", b"\x00" * 100])
async def test_a_damaged_log_is_a_permanent_error_that_names_no_path(world, table, damage):
    (table.log / commit_name(0)).write_bytes(damage)
    os.utime(table.log / commit_name(0), (0, 0))

    with pytest.raises(GatewayError) as caught:
        await world.query(table)

    assert isinstance(caught.value, Unsupported)
    assert str(table.directory) not in caught.value.message


@pytest.fixture
def deleted(tmp_path):
    """A table of three files: rows of the first are gone by a vector in a file, one of the second inline."""
    table = numbers(tmp_path, **with_features("deletionVectors")).append(rows(range(9)), files=3)
    table.delete_by_vector(pl.col("number").is_in([0, 1]))
    return table.delete_by_vector(pl.col("number") == 4, "i")


async def test_deletion_vectors_are_served_in_delta_with_urls_of_their_own(world, deleted):
    answer = await world.query(deleted, capabilities=DELTA)

    assert answer.protocol["deltaProtocol"]["readerFeatures"] == ["deletionVectors"]
    found = {
        path_of(fields): (file, fields)
        for file, (_, fields) in zip(answer.files, answer.actions, strict=True)
    }
    in_file, inline, without = (found[path] for path in sorted(deleted.live))
    vector = in_file[1]["deletionVector"]
    assert (vector["storageType"], vector["cardinality"], vector["offset"]) == ("p", 2, 1)
    name = vector["pathOrInlineDv"].removeprefix("https://0/")
    assert (deleted.directory / name).is_file()
    assert in_file[0]["deletionVectorFileId"] == hashlib.sha256(name.encode()).hexdigest()
    [kept] = [add for add in deleted.live.values() if add.get("deletionVector", {}).get("storageType") == "i"]
    assert inline[1]["deletionVector"] == kept["deletionVector"]
    assert "deletionVectorFileId" not in inline[0]
    assert "deletionVector" not in without[1]


async def test_rows_that_are_deleted_do_not_count_towards_a_limit(world, deleted):
    plain = numbers(deleted.directory.parent / "plain").append(rows(range(9)), files=3)

    assert len((await world.query(plain, limit_hint=3)).files) == 1
    # The vectors leave one row of the first file and two of the second, wherever the log has them.
    assert len((await world.query(deleted, limit_hint=4, max_files=9, capabilities=DELTA)).files) == 3


async def test_deletion_vectors_are_refused_in_parquet_by_name_and_told_to_whoever_asks(world, deleted):
    for capabilities in (NOTHING, PARQUET):
        with pytest.raises(Unsupported, match="deletionVectors, which the parquet response format"):
            await world.query(deleted, capabilities=capabilities)
    undeclared = pb.ReaderCapabilities(response_formats=BOTH.response_formats)
    with pytest.raises(Unsupported, match="readerfeatures=deletionvectors"):
        await world.query(deleted, capabilities=undeclared)

    head = await world.metadata(deleted, capabilities=undeclared)

    assert head.response_format == pb.RESPONSE_FORMAT_DELTA
    assert head.lines == (await world.query(deleted, capabilities=BOTH)).head.lines


async def test_mapped_columns_are_told_by_their_physical_names(world, tmp_path):
    fields = [Field("n", "long"), Field("p", "string")]
    table = TableBuilder(tmp_path / "t", fields, partition_by=["p"], **with_features("columnMapping"))
    table.append([{"n": 1, "p": "a"}, {"n": 2, "p": None}]).rename_column("p", "part")

    answer = await world.query(table, capabilities=DELTA, predicate_hints=["part = 'a'"])

    metadata = answer.metadata["deltaMetadata"]
    assert metadata["partitionColumns"] == ["part"]
    _, column = json.loads(metadata["schemaString"])["fields"]
    physical = column["metadata"]["delta.columnMapping.physicalName"]
    [(_, fields_of)] = answer.actions
    assert fields_of["partitionValues"] == {physical: "a"}
    with pytest.raises(Unsupported, match="columnMapping, which the parquet response format"):
        await world.query(table)


async def test_a_table_with_a_change_feed_is_any_reader_s(world, tmp_path):
    table = numbers(tmp_path, **with_features("changeDataFeed")).append(rows([1, 2]))
    table.update(pl.col("number") == 1, number=pl.col("number") + 10)

    assert (await world.query(table)).paths == list(table.live)
    assert (await world.query(table, capabilities=DELTA)).paths == list(table.live)


async def test_the_latest_version_is_as_old_as_the_grant_accepts(world, table):
    fresh = {"freshness": timedelta(seconds=30)}
    assert (await world.query(table, grant=fresh)).head.version == 2
    table.append(rows([5]))

    world.grants.now += timedelta(seconds=29)
    assert (await world.query(table, grant=fresh)).head.version == 2
    assert (await world.metadata(table, **fresh)).version == 2
    assert await world.version(table, **fresh) == 2
    world.grants.now += timedelta(seconds=1)
    assert (await world.query(table, grant=fresh)).head.version == 3


async def test_who_accepts_no_age_gets_the_latest_version(world, table):
    assert (await world.query(table, grant={"freshness": timedelta(hours=1)})).head.version == 2
    table.append(rows([5]))

    assert (await world.query(table)).head.version == 3
    assert await world.version(table) == 3
