from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.demo.checkpoint import to_checkpoint, to_v2_checkpoint
from gateway.domain.log import checkpoint_name, commit_name, compaction_name
from gateway.services.snapshot.log.plan import plan_log, plan_steps
from tests.fakes.faulty_log_reader import FaultyLogReader

TABLE: list[dict[str, Any]] = [
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {"metaData": {"id": "t", "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
]
UUID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def reader() -> FaultyLogReader:
    made = FaultyLogReader()
    for version in range(6):
        made.put(commit_name(version), json.dumps({"commitInfo": {"n": version}}).encode())
    return made


async def test_a_log_without_a_checkpoint_is_its_commits(reader):
    plan = await plan_log(reader.log)
    assert (plan.version, plan.checkpoint, plan.sidecars) == (5, (), ())
    assert plan.commits == tuple(commit_name(version) for version in range(6))
    assert plan.size == sum(map(len, reader.files.values()))
    assert (plan.anchor, plan.anchor_size) == (commit_name(5), len(reader.files[commit_name(5)]))


async def test_a_log_is_read_from_its_newest_checkpoint_on(reader):
    [content] = to_checkpoint(TABLE)
    reader.put(checkpoint_name(3), content)
    plan = await plan_log(reader.log)
    assert plan.checkpoint == (checkpoint_name(3),)
    assert plan.commits == (commit_name(4), commit_name(5))


async def test_commits_are_read_and_not_what_they_were_compacted_to(reader):
    reader.put(compaction_name(0, 5), b"{}")
    assert len((await plan_log(reader.log)).commits) == 6


async def test_the_sidecars_of_a_checkpoint_are_named(reader):
    refers = [{"sidecar": {"path": f"{name}.parquet", "sizeInBytes": 1}} for name in ("a", "b%20c")]
    content = to_v2_checkpoint([{"checkpointMetadata": {"version": 5}}, *TABLE, *refers])
    reader.put(f"{5:020d}.checkpoint.{UUID}.parquet", content)
    plan = await plan_log(reader.log)
    assert plan.sidecars == ("_sidecars/a.parquet", "_sidecars/b c.parquet")
    assert plan.commits == ()


async def test_what_came_since_a_version_is_its_commits(reader):
    name = commit_name(3)
    plan = await plan_steps(reader.log, 3, len(reader.files[name]), reader.modified_at[name])
    assert plan is not None
    assert (plan.version, plan.commits) == (5, (commit_name(4), commit_name(5)))


async def test_nothing_leads_on_from_a_version_that_was_written_anew(reader):
    name = commit_name(3)
    size, at = len(reader.files[name]), reader.modified_at[name]
    assert await plan_steps(reader.log, 3, size + 1, at) is None
    assert await plan_steps(reader.log, 3, size, at + timedelta(seconds=1)) is None
    reader.remove(name)
    assert await plan_steps(reader.log, 3, size, at) is None


async def test_nothing_leads_over_a_gap(reader):
    reader.remove(commit_name(4))
    name = commit_name(3)
    assert await plan_steps(reader.log, 3, len(reader.files[name]), reader.modified_at[name]) is None
