from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest

from gateway.demo.checkpoint import to_sidecars
from gateway.domain.log import checkpoint_name, commit_name, version_prefix
from gateway.errors import Unsupported
from gateway.services.snapshot.log.listing import list_log, list_recent
from gateway.services.snapshot.log.loading import load_version
from tests.builders import add
from tests.fakes.faulty_log_reader import FaultyLogReader
from tests.unit.services.snapshot.log.parquet_files import described, group, leaf

_TABLE: list[dict[str, Any]] = [
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {"metaData": {"id": "t", "schemaString": "{}", "configuration": {}}},
]


def v2_name(version: int, number: int = 0) -> str:
    return f"{version_prefix(version)}.checkpoint.{number:08x}-0000-4000-8000-000000000000.json"


def reader_with_commits(count: int) -> FaultyLogReader:
    reader = FaultyLogReader()
    for version in range(count):
        reader.put(commit_name(version), lines(*(_TABLE if version == 0 else ()), add(str(version))))
    return reader


def lines(*actions: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()


async def test_a_sidecar_that_is_named_many_times_is_read_once():
    reader = reader_with_commits(1)
    [sidecar] = to_sidecars([add("a"), add("b")], 1)
    reader.put("_sidecars/s.parquet", sidecar)
    # Another spelling of a name is the same file.
    named = [{"sidecar": {"path": path}} for path in ("s.parquet", "s.parquet", "%73.parquet")]
    reader.put(v2_name(0), lines({"checkpointMetadata": {"version": 0}}, *_TABLE, *named))

    loaded = await load_version(reader.log, await list_log(reader.log), 0)

    assert reader.read.count("_sidecars/s.parquet") == 1
    assert sum(part.files.height for part in loaded.checkpoint) == 2


async def test_sidecars_of_more_rows_than_any_are_refused_though_each_has_fewer():
    reader = reader_with_commits(1)
    reader.remove(commit_name(0))
    buffer = io.BytesIO()
    pl.DataFrame({"add": pl.repeat(None, 11_000_000, dtype=pl.Null, eager=True)}).write_parquet(buffer)
    for name in ("s", "t"):
        reader.put(f"_sidecars/{name}.parquet", buffer.getvalue())
    named = [{"sidecar": {"path": f"{name}.parquet"}} for name in ("s", "t")]
    reader.put(v2_name(0), lines({"checkpointMetadata": {"version": 0}}, *_TABLE, *named))

    with pytest.raises(Unsupported, match=r"_sidecars/[st]\.parquet makes the checkpoint larger"):
        await load_version(reader.log, await list_log(reader.log), 0)


@pytest.mark.parametrize("count", [50, 500])
async def test_a_log_full_of_damaged_checkpoints_is_given_up(count):
    reader = reader_with_commits(2)
    for number in range(count):
        reader.put(v2_name(1, number), b"no checkpoint")

    with pytest.raises(Unsupported, match="is damaged"):
        await load_version(reader.log, await list_log(reader.log), 1)
    assert len(reader.read) < 50


async def test_a_few_damaged_checkpoints_are_passed_over():
    reader = reader_with_commits(2)
    for number in range(5):
        reader.put(v2_name(1, number), b"no checkpoint")

    assert (await load_version(reader.log, await list_log(reader.log), 1)).checkpoint == []


async def test_a_hint_that_is_larger_than_any_is_done_without():
    reader = reader_with_commits(3)
    reader.put(checkpoint_name(1), b"any")
    reader.put("_last_checkpoint", json.dumps({"version": 1, "more": "x" * 5_000_000}).encode())

    assert sorted((await list_recent(reader.log)).commits) == [0, 1, 2]


async def test_a_checkpoint_whose_columns_are_nested_too_deeply_is_passed_over():
    reader = reader_with_commits(2)
    columns = [group("schema", 1), group("add", 1), *([group("g", 1)] * 1300), leaf("x")]
    reader.put(checkpoint_name(1), described(*columns))
    fallbacks: list[str] = []

    loaded = await load_version(reader.log, await list_log(reader.log), 1, count_fallback=fallbacks.append)

    assert loaded.checkpoint == []
    assert fallbacks == ["checkpoint"]


async def test_the_parts_of_a_checkpoint_refer_to_so_many_sidecars_together():
    reader = reader_with_commits(1)
    reader.remove(commit_name(0))
    for part in (1, 2):
        named = pl.DataFrame({"sidecar": [{"path": f"{part}-{n}"} for n in range(5001)]})
        content = io.BytesIO()
        table = pl.DataFrame(
            {"protocol": [{"minReaderVersion": 1}], "metaData": [{"id": "t", "schemaString": "{}"}]}
        )
        pl.concat([table, named], how="diagonal").write_parquet(content)
        reader.put(f"{version_prefix(0)}.checkpoint.{part:010}.{2:010}.parquet", content.getvalue())

    with pytest.raises(Unsupported, match="refers to more than 10000 sidecars"):
        await load_version(reader.log, await list_log(reader.log), 0)
    assert not [name for name in reader.read if "_sidecars" in name]
