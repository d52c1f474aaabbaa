from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from gateway.demo.checkpoint import to_checkpoint, to_sidecars, to_v2_checkpoint
from gateway.domain.log import checkpoint_name, commit_name, compaction_name, version_prefix
from gateway.errors import GatewayError, InvalidArgument, NotFound, Unavailable, Unsupported
from gateway.services.snapshot.log.bounds import Crowded
from gateway.services.snapshot.log.listing import list_log
from gateway.services.snapshot.log.loading import Loaded, load_steps, load_version
from tests.builders import add, remove
from tests.cases import each_case
from tests.fakes.faulty_log_reader import STARTED_AT, FaultyLogReader
from tests.unit.services.snapshot.log.parquet_files import parquet

_UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
_PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def metadata(**configuration: str) -> dict[str, Any]:
    return {"metaData": {"id": "t", "schemaString": "{}", "configuration": configuration}}


def lines(*actions: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()


def table(commits: int = 5, /, **configuration: str) -> FaultyLogReader:
    """Return a log whose nth commit adds ``n``."""
    reader = FaultyLogReader()
    reader.put(commit_name(0), lines(_PROTOCOL, metadata(**configuration), add("0")))
    for version in range(1, commits):
        reader.put(commit_name(version), lines(add(str(version))))
    return reader


def state(version: int) -> list[dict[str, Any]]:
    return [_PROTOCOL, metadata(), *(add(str(each)) for each in range(version + 1))]


_STATE = pl.read_parquet(io.BytesIO(to_checkpoint(state(3))[0]))


def put_checkpoint(reader: FaultyLogReader, version: int) -> str:
    [content] = to_checkpoint(state(version))
    reader.put(checkpoint_name(version), content)
    return checkpoint_name(version)


def put_v2(
    reader: FaultyLogReader, version: int, sidecars: Sequence[str] = ("s", "t"), **changes: Any
) -> str:
    files = to_sidecars(state(version)[2:], len(sidecars))
    for name, content in zip(sidecars, files, strict=True):
        reader.put(f"_sidecars/{name}.parquet", content)
    stated = [{"sidecar": {"path": f"{name}.parquet"}} for name in sidecars]
    name = f"{version_prefix(version)}.checkpoint.{_UUID}.json"
    checkpoint = {"checkpointMetadata": {"version": version, **changes}}
    reader.put(name, lines(checkpoint, *state(version)[:2], *stated))
    return name


async def load(reader: FaultyLogReader, version: int | None = None, **options: Any) -> Loaded:
    listing = await list_log(reader.log)
    return await load_version(reader.log, listing, listing.latest if version is None else version, **options)


def paths_of(loaded: Loaded) -> list[str]:
    paths: dict[str, None] = {}
    for part in (*loaded.checkpoint, *loaded.commits):
        for path in part.removed["path"]:
            paths.pop(path, None)
        paths.update(dict.fromkeys(part.files["path"]))
    return sorted(paths)


async def test_a_version_is_read_from_its_first_commit_on():
    loaded = await load(table())

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert (loaded.version, loaded.anchor.name, loaded.checkpoint) == (4, commit_name(4), [])


async def test_a_version_is_read_from_its_newest_checkpoint_on():
    reader = table()
    put_checkpoint(reader, 1)
    put_checkpoint(reader, 3)

    loaded = await load(reader)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert reader.read == [checkpoint_name(3), commit_name(4)]


async def test_an_older_version_is_read_up_to_itself():
    reader = table()
    put_checkpoint(reader, 3)

    assert paths_of(await load(reader, 2)) == ["0", "1", "2"]


async def test_a_checkpoint_in_parts_is_read_whole():
    reader = table()
    for part, content in enumerate(to_checkpoint(state(3), 3), 1):
        reader.put(checkpoint_name(3, part, 3), content)

    loaded = await load(reader)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert len(loaded.checkpoint) == 3


async def test_a_v2_checkpoint_is_read_with_its_sidecars():
    reader = table()
    name = put_v2(reader, 3)

    loaded = await load(reader)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert reader.read[0] == name
    assert sorted(reader.read[1:3]) == ["_sidecars/s.parquet", "_sidecars/t.parquet"]


async def test_a_v2_checkpoint_may_have_adds_of_its_own_beside_its_sidecars():
    reader = table()
    [sidecar] = to_sidecars(state(3)[2:4], 1)
    reader.put("_sidecars/s.parquet", sidecar)
    own = [{"checkpointMetadata": {"version": 3}}, *state(3)[:2], *state(3)[4:]]
    name = f"{version_prefix(3)}.checkpoint.{_UUID}.json"
    reader.put(name, lines(*own, {"sidecar": {"path": "s.parquet"}}))

    loaded = await load(reader)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert sorted(reader.read) == sorted([name, "_sidecars/s.parquet", commit_name(4)])


async def test_a_v2_checkpoint_may_have_a_classic_name():
    reader = table()
    [sidecar] = to_sidecars(state(3)[2:], 1)
    reader.put("_sidecars/s.parquet", sidecar)
    checkpoint = {"checkpointMetadata": {"version": 3}}
    content = to_v2_checkpoint([checkpoint, *state(3)[:2], {"sidecar": {"path": "s.parquet"}}])
    reader.put(checkpoint_name(3), content)

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]
    assert reader.read == [checkpoint_name(3), "_sidecars/s.parquet", commit_name(4)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"\0" * 100,
        to_checkpoint([add("0")])[0],
        to_checkpoint(state(3))[0][:-20],
        parquet(_STATE.drop("add")),
        parquet(_STATE.with_columns(pl.concat_list("add"))),
    ],
    ids=["empty", "magic", "zeros", "no metadata", "cut", "no adds", "adds of another type"],
)
async def test_a_damaged_checkpoint_gives_way_to_an_older_one(content, caplog):
    reader, counted = table(), list[str]()
    put_checkpoint(reader, 1)
    reader.put(checkpoint_name(3), content)

    loaded = await load(reader, count_fallback=counted.append)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert counted == ["checkpoint"]
    [record] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert record.__dict__["file"] == checkpoint_name(3)


async def test_without_an_older_checkpoint_the_commits_are_read():
    reader = table()
    reader.put(checkpoint_name(3), b"nonsense")

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


async def test_another_checkpoint_of_the_same_version_takes_the_place_of_a_damaged_one():
    reader = table()
    reader.put(checkpoint_name(3), b"nonsense")
    put_v2(reader, 3)
    reader.remove(commit_name(0))

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


@each_case("harm", ["gone", "cut", "denied", "of something else"])
async def test_a_sidecar_that_is_of_no_use_makes_its_checkpoint_so(harm):
    reader = table()
    put_v2(reader, 3)
    if harm == "gone":
        reader.remove("_sidecars/t.parquet")
    elif harm == "cut":
        reader.cut["_sidecars/t.parquet"] = 20
    elif harm == "of something else":
        reader.put("_sidecars/t.parquet", parquet(pl.DataFrame({"number": [1, 2, 3]})))
    else:
        reader.failures["_sidecars/t.parquet"] = [Unsupported("not permitted")]

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("directory", ["s3://lake/t/_delta_log/_sidecars", "_sidecars"])
async def test_sidecars_may_be_named_with_the_tables_own_directory(directory):
    reader = table()
    [sidecar] = to_sidecars(state(3)[2:], 1)
    reader.put("_sidecars/s.parquet", sidecar)
    named = {"sidecar": {"path": f"{directory}/s.parquet"}}
    checkpoint = {"checkpointMetadata": {"version": 3}}
    reader.put(f"{version_prefix(3)}.checkpoint.{_UUID}.json", lines(checkpoint, *state(3)[:2], named))
    reader.remove(commit_name(0))

    await load(reader)

    assert "_sidecars/s.parquet" in reader.read


@each_case("path", ["../x.parquet", "a/b.parquet", "s3://other/x.parquet", "%2e%2e", "a%2Fb", "/x"])
async def test_a_sidecar_elsewhere_is_not_followed(path):
    reader = table()
    checkpoint = {"checkpointMetadata": {"version": 3}}
    reader.put(
        f"{version_prefix(3)}.checkpoint.{_UUID}.json",
        lines(checkpoint, *state(3)[:2], {"sidecar": {"path": path}}),
    )
    reader.remove(commit_name(0))

    with pytest.raises(Unsupported, match="refers to a sidecar outside of _sidecars"):
        await load(reader)
    assert not [name for name in reader.read if not name.startswith("0")]


async def test_a_checkpoint_that_there_is_no_room_for_is_not_passed_over():
    reader, counted = table(), list[str]()
    put_checkpoint(reader, 3)

    with pytest.raises(Crowded):
        await load(reader, room=1, count_fallback=counted.append)
    assert counted == []
    assert len(reader.listed) == 1


async def test_a_damaged_checkpoint_that_nothing_can_replace_is_named():
    reader = table()
    reader.put(checkpoint_name(3), b"nonsense")
    reader.remove(commit_name(0), commit_name(1))

    with pytest.raises(
        Unsupported, match=r"damaged: 00000000000000000003\.checkpoint\.parquet cannot be parsed"
    ):
        await load(reader)


async def test_a_damaged_commit_is_named():
    reader = table()
    reader.put(commit_name(2), b'{"add":{"path"')

    with pytest.raises(Unsupported, match=r"damaged: 00000000000000000002\.json cannot be parsed"):
        await load(reader)


async def test_a_gap_is_named_after_a_second_look():
    reader = table()
    reader.remove(commit_name(2))

    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        await load(reader)
    assert len(reader.listed) == 2


async def test_a_listing_that_missed_a_commit_in_the_middle_is_looked_at_again():
    reader = table()
    reader.lies = [lambda files: [file for file in files if file.name != commit_name(2)]]

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


async def test_a_listing_that_always_misses_a_commit_in_the_middle_gives_no_answer():
    reader = table()
    reader.lies = [lambda files: [file for file in files if file.name != commit_name(2)]] * 9

    with pytest.raises(Unsupported, match=r"lacks 00000000000000000002\.json"):
        await load(reader)


async def test_a_listing_out_of_order_and_with_repeats_gives_the_same_answer():
    reader = table()
    put_checkpoint(reader, 2)
    reader.lies = [lambda files: [*reversed(files), *files]]

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


async def test_a_log_that_is_cleaned_up_between_listing_and_reading_is_listed_again():
    reader = table()
    put_checkpoint(reader, 1)

    def clean_up(name: str) -> None:
        reader.before_read = lambda _: None
        put_checkpoint(reader, 4)
        reader.remove(checkpoint_name(1), *(commit_name(version) for version in range(4)))

    reader.before_read = clean_up

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


async def test_a_commit_that_is_listed_and_never_there_is_missing():
    reader = table()
    reader.failures[commit_name(2)] = [NotFound("gone")] * 9

    with pytest.raises(InvalidArgument, match="table files missing") as caught:
        await load(reader)

    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"
    assert len(reader.listed) == 2


async def test_a_commit_that_arrives_cut_short_at_a_line_is_read_again():
    reader = table()
    reader.put(commit_name(2), lines(add("2"), remove("0")))
    reader.cut[commit_name(2)] = len(lines(add("2")))
    reader.before_read = lambda name: reader.cut.clear() if reader.read.count(name) > 1 else None

    assert paths_of(await load(reader)) == ["1", "2", "3", "4"]


async def test_a_commit_that_keeps_arriving_cut_short_gives_no_answer():
    reader = table()
    reader.put(commit_name(2), lines(add("2"), remove("0")))
    reader.cut[commit_name(2)] = len(lines(add("2")))

    with pytest.raises(Unavailable, match=r"00000000000000000002\.json is not as long as it is listed"):
        await load(reader)
    assert reader.times_read()[commit_name(2)] == 2


async def test_a_commit_that_is_longer_than_it_was_listed_is_listed_again():
    reader = table()
    # It was being written when it was listed, and may still be.
    reader.lies = [lambda files: [replace(file, size=file.size - 1) for file in files]]

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]
    assert reader.listed == ["", ""]


async def test_a_checkpoint_in_json_that_arrives_cut_short_is_passed_over():
    reader = table()
    name = put_v2(reader, 3)
    reader.cut[name] = len(reader.files[name]) - len(lines({"sidecar": {"path": "t.parquet"}}))

    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("failing", [commit_name(2), checkpoint_name(3), "_sidecars/s.parquet"])
async def test_a_store_that_does_not_answer_is_unavailable_and_asked_no_further(failing):
    reader = table()
    put_checkpoint(reader, 1)
    if failing == checkpoint_name(3):
        put_checkpoint(reader, 3)
    elif failing.startswith("_sidecars"):
        put_v2(reader, 3)
    reader.failures[failing] = [Unavailable("the table's log cannot be read at the moment")] * 9

    with pytest.raises(Unavailable):
        await load(reader)

    assert reader.times_read()[failing] == 1
    assert len(reader.listed) == 1


async def test_a_store_that_fails_once_has_failed_the_request_and_not_the_next():
    reader = table()
    reader.failures[commit_name(2)] = [Unavailable("throttled")]

    with pytest.raises(Unavailable):
        await load(reader)
    assert paths_of(await load(reader)) == ["0", "1", "2", "3", "4"]


async def test_an_outage_is_unavailable():
    reader = table()
    listing = await list_log(reader.log)
    reader.outage = Unavailable("down")

    with pytest.raises(Unavailable):
        await load_version(reader.log, listing, 4)


async def test_commits_are_read_some_at_a_time():
    reader = table(60)

    assert len(paths_of(await load(reader))) == 60
    assert 1 < reader.most_at_once <= 16


async def test_a_compaction_is_read_in_place_of_its_commits():
    reader = table()
    reader.put(commit_name(3), lines(remove("0"), remove("1")))
    reader.put(compaction_name(1, 3), lines(remove("0"), remove("1"), add("2")))

    assert paths_of(await load(reader)) == ["2", "4"]
    assert reader.read == [commit_name(0), compaction_name(1, 3), commit_name(4)]


@pytest.mark.parametrize("harm", ["gone", "damaged", "cut"])
async def test_a_compaction_that_is_of_no_use_gives_way_to_its_commits(harm):
    reader, counted = table(), list[str]()
    reader.put(compaction_name(1, 3), lines(add("1"), add("2"), add("3")))
    listing = await list_log(reader.log)
    if harm == "gone":
        reader.remove(compaction_name(1, 3))
    elif harm == "damaged":
        reader.files[compaction_name(1, 3)] = b"x" * len(reader.files[compaction_name(1, 3)])
    else:
        reader.cut[compaction_name(1, 3)] = len(lines(add("1"), add("2")))

    loaded = await load_version(reader.log, listing, 4, count_fallback=counted.append)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert counted == ["compaction"]


async def test_a_compaction_of_a_table_that_soon_forgets_its_removes_is_not_trusted():
    reader = table(5, **{"delta.deletedFileRetentionDuration": "interval 0 hours"})
    reader.put(commit_name(3), lines(remove("0"), add("3")))
    # Its writer took the remove for one that nobody needs any more.
    reader.put(compaction_name(1, 3), lines(add("1"), add("2"), add("3")))

    assert paths_of(await load(reader)) == ["1", "2", "3", "4"]


async def test_a_compaction_that_was_written_late_is_not_trusted():
    reader = table()
    reader.put(commit_name(3), lines(remove("0"), add("3")))
    reader.put(compaction_name(1, 3), lines(add("1"), add("2"), add("3")), STARTED_AT + timedelta(days=8))

    assert paths_of(await load(reader)) == ["1", "2", "3", "4"]


async def test_a_partial_listing_whose_checkpoint_is_damaged_is_made_whole():
    reader = table()
    put_checkpoint(reader, 3)
    listing = await list_log(reader.log, version_prefix(3))
    reader.files[checkpoint_name(3)] = b"nonsense"

    loaded = await load_version(reader.log, listing, 4)

    assert paths_of(loaded) == ["0", "1", "2", "3", "4"]
    assert reader.listed == [version_prefix(3), ""]


async def test_steps_are_the_commits_after_a_version():
    reader = table()
    put_checkpoint(reader, 4)
    listing = await list_log(reader.log)

    loaded = await load_steps(reader.log, listing, 2, 4)

    assert loaded is not None
    assert (loaded.version, loaded.anchor.name, loaded.checkpoint) == (4, commit_name(4), ())
    assert reader.read == [commit_name(3), commit_name(4)]


async def test_steps_over_a_gap_lead_nowhere():
    reader = table()
    reader.remove(commit_name(3))

    assert await load_steps(reader.log, await list_log(reader.log), 2, 4) is None


@pytest.mark.parametrize("harm", ["gone", "cut"])
async def test_steps_that_are_not_as_listed_lead_nowhere(harm):
    reader = table()
    listing = await list_log(reader.log)
    if harm == "gone":
        reader.remove(commit_name(3))
    else:
        reader.cut[commit_name(3)] = 3

    assert await load_steps(reader.log, listing, 2, 4) is None


async def test_damaged_steps_lead_nowhere_where_a_checkpoint_leads_past_them():
    reader = table()
    reader.put(commit_name(3), b"{")
    put_checkpoint(reader, 3)

    assert await load_steps(reader.log, await list_log(reader.log), 2, 4) is None


@pytest.mark.parametrize("checkpoint", [2, 4])
async def test_damaged_steps_are_named_where_no_checkpoint_leads_past_them(checkpoint):
    reader = table()
    reader.put(commit_name(3), b"{")
    put_checkpoint(reader, checkpoint)

    with pytest.raises(Unsupported, match=commit_name(3)):
        await load_steps(reader.log, await list_log(reader.log), 2, 3)


@pytest.mark.parametrize("error", [Unavailable("down"), Unsupported("denied")])
async def test_steps_that_cannot_be_read_fail(error: GatewayError):
    reader = table()
    reader.failures[commit_name(3)] = [error]

    with pytest.raises(type(error)):
        await load_steps(reader.log, await list_log(reader.log), 2, 4)
