from __future__ import annotations

import hashlib
import json
import os
from contextlib import aclosing
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest

from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.log import commit_name
from gateway.domain.table import AccessMode
from gateway.errors import GatewayError, InvalidArgument, Unauthenticated, Unsupported
from gateway.ports import Storage
from gateway.services.snapshot.answer.page import MAX_FILES
from gateway.services.snapshot.servicer import SnapshotServicer
from gateway.v1 import snapshot_pb2 as pb
from tests.builders import STARTED_AT, STEP, Field, TableBuilder, add, location_of, numbers, rows
from tests.fakes.grants import Grants
from tests.fakes.log_reader import FakeLogReader
from tests.fakes.storages import FakeStorages

# The servicer takes everything from the request.
_CONTEXT: Any = None
_EMPTY = pb.ReaderCapabilities()
_PARQUET = pb.ReaderCapabilities(response_formats=[pb.RESPONSE_FORMAT_PARQUET])
_DELTA = pb.ReaderCapabilities(response_formats=[pb.RESPONSE_FORMAT_DELTA])
_BOTH = pb.ReaderCapabilities(
    response_formats=[pb.RESPONSE_FORMAT_DELTA, pb.RESPONSE_FORMAT_PARQUET],
    reader_features=["deletionvectors"],
)


class World:
    """A snapshot service over the tables of a directory, and grants for them."""

    def __init__(self) -> None:
        self.grants = Grants()
        self.reader = FakeLogReader()
        root = parse_location("/")
        self.servicer = SnapshotServicer(
            storages=FakeStorages(Storage(name="disk", prefix=root, reader=self.reader)),
            verifier=self.grants.verifier(Audience.SNAPSHOT),
            clock=self.grants.clock,
            memory=2**20,
        )

    def grant(self, table: TableBuilder, **changes: Any) -> str:
        changes = {"audience": Audience.SNAPSHOT, "location": location_of(table), **changes}
        return self.grants.sign(**changes)

    async def version(self, table: TableBuilder, starting_timestamp: str = "", **changes: Any) -> int:
        request = pb.GetVersionRequest(
            grant=self.grant(table, **changes), starting_timestamp=starting_timestamp
        )
        return (await self.servicer.GetVersion(request, _CONTEXT)).version

    async def metadata(self, table: TableBuilder, *, capabilities=_EMPTY, at=None, **changes: Any):
        request = pb.GetMetadataRequest(grant=self.grant(table, **changes), capabilities=capabilities, at=at)
        return (await self.servicer.GetMetadata(request, _CONTEXT)).head

    async def query(self, table: TableBuilder, *, grant: dict[str, Any] | None = None, **fields: Any):
        request = pb.QueryRequest(grant=self.grant(table, **(grant or {})), **fields)
        parts = [part async for part in self.servicer.Query(request, _CONTEXT)]
        assert [part.WhichOneof("part") for part in parts] == ["head"] + ["page"] * (len(parts) - 1)
        return parts[0].head, [part.page for part in parts[1:]]

    async def files(self, table: TableBuilder, **arguments: Any):
        _, pages = await self.query(table, **arguments)
        # A hole before an expiration is filled; the URL's is a text without content.
        lines = b"".join(page.lines for page in pages).replace(
            b'"expirationTimestamp":}', b'"expirationTimestamp":0}'
        )
        return [json.loads(line)["file"] for line in lines.splitlines()]


@pytest.fixture
def world():
    return World()


@pytest.fixture
def table(tmp_path):
    return numbers(tmp_path).append(rows([1, 2])).append(rows([3])).append(rows([4]))


def at_version(version: int) -> pb.TableAt:
    return pb.TableAt(version=version)


def at_time(text: str) -> pb.TableAt:
    return pb.TableAt(timestamp=text)


def iso(hours: float) -> str:
    return (STARTED_AT + hours * STEP).isoformat()


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
    head, _ = await world.query(table)

    assert head == await world.metadata(table)


async def test_a_query_returns_the_live_files_in_order(world, table):
    files = await world.files(table)

    assert [file["id"] for file in files] == [hashlib.md5(path.encode()).hexdigest() for path in table.live]
    assert [file["size"] for file in files] == [file["size"] for file in table.live.values()]
    assert [file["stats"] for file in files] == [file["stats"] for file in table.live.values()]
    assert all("version" not in file and "timestamp" not in file for file in files)


async def test_a_query_by_version_returns_the_files_of_that_version(world, table):
    first = next(iter(table.live))

    [file] = await world.files(table, at=at_version(0))

    assert file["id"] == hashlib.md5(first.encode()).hexdigest()
    assert file["version"] == 0
    assert file["timestamp"] == int(STARTED_AT.timestamp() * 1000)


async def test_the_metadata_of_a_version_says_so(world, table):
    head = await world.metadata(table, at=at_version(1))

    assert head.version == metadata_of(head)["version"] == 1
    assert head == (await world.query(table, at=at_version(1)))[0]


async def test_a_query_by_timestamp_returns_the_version_of_that_time(world, table):
    head, _ = await world.query(table, at=at_time(iso(1.5)))

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


async def test_times_inside_of_commits_are_not_mistaken_for_those_of_the_files(world, table):
    table.describe(configuration={"delta.enableInCommitTimestamps": "true"})

    with pytest.raises(Unsupported, match="use a version"):
        await world.version(table, iso(0))
    with pytest.raises(Unsupported, match="use a version"):
        await world.query(table, at=at_time(iso(0)))
    assert all("timestamp" not in file for file in await world.files(table, at=at_version(3)))


async def test_a_log_without_its_latest_commit_has_no_times(world, table):
    table.checkpoint().clean_up(before=3)

    with pytest.raises(Unsupported, match="no longer holds the commits"):
        await world.version(table, iso(0))
    assert all("timestamp" not in file for file in await world.files(table, at=at_version(2)))


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
    assert len(await world.files(table, limit_hint=3)) == 2
    assert len(await world.files(table, limit_hint=0)) == 0


async def test_a_negative_limit_is_refused(world, table):
    with pytest.raises(InvalidArgument, match="limitHint"):
        await world.query(table, limit_hint=-1)


async def test_hints_that_mean_nothing_are_ignored(world, table):
    files = await world.files(table, predicate_hints=["nonsense >"], json_predicate_hints="{")

    assert len(files) == 3


async def test_ids_may_be_those_of_the_delta_format(world, table):
    files = await world.files(table, file_id_hash=pb.FILE_ID_HASH_DELTA)

    assert [file["id"] for file in files] == [
        hashlib.sha256(path.encode()).hexdigest() for path in table.live
    ]


async def test_an_unknown_kind_of_id_is_refused(world, table):
    with pytest.raises(InvalidArgument, match="file id hash 9"):
        await world.query(table, file_id_hash=9)


@pytest.mark.parametrize("capabilities", [_EMPTY, _PARQUET, _BOTH])
async def test_who_can_read_parquet_gets_parquet(world, table, capabilities):
    head = await world.metadata(table, capabilities=capabilities)

    assert head.response_format == pb.RESPONSE_FORMAT_PARQUET


async def test_who_can_read_delta_only_is_told(world, table):
    with pytest.raises(Unsupported, match="responseformat=delta is not supported yet"):
        await world.metadata(table, capabilities=_DELTA)
    with pytest.raises(Unsupported, match="responseformat=delta is not supported yet"):
        await world.query(table, capabilities=_DELTA)


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


async def test_odd_partition_values_arrive_as_they_are(world, tmp_path):
    values = ["a b", "50%", "a/b", 'say "hi"', "line\u2028break", "Grüße", "", None]
    table = TableBuilder(tmp_path / "odd", [Field("n", "long"), Field("p", "string")], partition_by=["p"])
    table.append([{"n": n, "p": value} for n, value in enumerate(values)])

    files = await world.files(table)
    _, [page] = await world.query(table)

    assert [file["partitionValues"]["p"] for file in files] == [value or "" for value in values]
    assert page.lines.isascii()
    assert page.paths.isascii()


async def test_the_paths_of_a_page_are_those_of_the_files_on_disk(world, tmp_path):
    values = ["a b", "50%", "a/b", "é", "1+1", None]
    table = TableBuilder(tmp_path / "odd", [Field("n", "long"), Field("p", "string")], partition_by=["p"])
    table.append([{"n": n, "p": value} for n, value in enumerate(values)])

    _, [page] = await world.query(table)

    assert all((table.directory / unquote(path.decode())).is_file() for path in page.paths.split(b"\n"))


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

    assert len(await world.files(table)) == 3


async def test_an_empty_table_has_a_head_and_no_pages(world, tmp_path):
    head, pages = await world.query(numbers(tmp_path).create())

    assert metadata_of(head)["numFiles"] == metadata_of(head)["size"] == 0
    assert pages == []


async def test_a_large_table_comes_in_pages(world, tmp_path):
    table = numbers(tmp_path).commit(*(add(f"f{number}") for number in range(2 * MAX_FILES + 1)))

    _, pages = await world.query(table)

    assert [page.files for page in pages] == [MAX_FILES, MAX_FILES, 1]
    assert b"\n".join(page.paths for page in pages).count(b"\n") == 2 * MAX_FILES


async def test_a_reader_that_stops_stops_the_work(world, tmp_path):
    table = numbers(tmp_path).commit(*(add(f"f{number}") for number in range(3 * MAX_FILES)))

    async with aclosing(world.servicer.Query(pb.QueryRequest(grant=world.grant(table)), _CONTEXT)) as parts:
        assert (await anext(parts)).HasField("head")
        assert (await anext(parts)).HasField("page")

    with pytest.raises(StopAsyncIteration):
        await anext(parts)


async def test_a_query_keeps_its_version_while_the_table_goes_on(world, tmp_path):
    table = numbers(tmp_path).commit(*(add(f"f{number}") for number in range(2 * MAX_FILES)))
    parts = world.servicer.Query(pb.QueryRequest(grant=world.grant(table)), _CONTEXT)
    head = (await anext(parts)).head
    table.delete_files(*list(table.live)[:MAX_FILES])
    assert await world.files(table)

    assert head.version == 0
    assert sum([part.page.files async for part in parts]) == 2 * MAX_FILES


async def test_a_dir_only_table_answers_metadata_and_version_and_no_query(world, table):
    only_dir = {"access_modes": (AccessMode.DIR,)}

    assert await world.version(table, **only_dir) == 2
    assert metadata_of(await world.metadata(table, **only_dir))["accessModes"] == ["dir"]
    with pytest.raises(Unsupported, match="only dir") as caught:
        await world.query(table, grant=only_dir)
    assert caught.value.error_code == "UNSUPPORTED_OPERATION"


@pytest.mark.parametrize("storages", [(), (Storage(name="no-reader", prefix=parse_location("/")),)])
async def test_a_table_in_no_storage_that_can_be_read_is_refused(world, table, storages):
    servicer = SnapshotServicer(
        storages=FakeStorages(*storages),
        verifier=world.grants.verifier(Audience.SNAPSHOT),
        clock=world.grants.clock,
        memory=2**20,
    )

    with pytest.raises(Unsupported, match=r"retail\.sales\.orders") as caught:
        await servicer.GetVersion(pb.GetVersionRequest(grant=world.grant(table)), _CONTEXT)
    assert str(table.directory) not in caught.value.message


async def test_a_grant_for_another_service_opens_nothing(world, table):
    foreign = {"audience": Audience.PRESIGN}

    for ask in (
        world.version(table, **foreign),
        world.metadata(table, **foreign),
        world.query(table, grant=foreign),
    ):
        with pytest.raises(Unauthenticated):
            await ask
    assert world.reader.listed == []


async def test_an_expired_grant_opens_nothing(world, table):
    grant = world.grant(table)
    world.grants.now += timedelta(seconds=61)

    with pytest.raises(Unauthenticated):
        await world.servicer.GetVersion(pb.GetVersionRequest(grant=grant), _CONTEXT)


async def test_changes_are_not_served_yet(world, table):
    with pytest.raises(Unsupported, match="not supported yet"):
        world.servicer.Changes(pb.ChangesRequest(grant=world.grant(table)), _CONTEXT)
    with pytest.raises(Unauthenticated):
        world.servicer.Changes(pb.ChangesRequest(grant="x"), _CONTEXT)


@pytest.mark.parametrize("damage", [b"", b"{", b"\x00" * 100])
async def test_a_damaged_log_is_a_permanent_error_that_names_no_path(world, table, damage):
    (table.log / commit_name(0)).write_bytes(damage)
    os.utime(table.log / commit_name(0), (0, 0))

    with pytest.raises(GatewayError) as caught:
        await world.query(table)

    assert isinstance(caught.value, Unsupported)
    assert str(table.directory) not in caught.value.message
