from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from gateway.demo.checkpoint import to_checkpoint
from gateway.domain.index import CURRENT, MANIFEST, prefix_of
from gateway.domain.log import checkpoint_name, commit_name
from gateway.errors import Unavailable
from gateway.services.snapshot.state.snapshot import Snapshot
from tests.fakes.state_store import FakeStateStore
from tests.unit.services.snapshot.index.histories import History
from tests.unit.services.snapshot.index.served import Served, bytes_of, lines_of
from tests.unit.services.snapshot.index.written import publish, put, stored, to_parquet, write_index


class Spoiled:
    """A log with an index of nine files in three blocks, for a test to spoil."""

    def __init__(self) -> None:
        self.history = History(1, plain=True)
        self.history.commit(9)
        while len(self.history.live) < 9:
            self.history.commit(1)
        self.history.commit(0)
        self.log = self.history.reader.log
        self.prefix = prefix_of(self.log.location)
        self.state = FakeStateStore()
        self.manifest: dict[str, Any] = {}

    async def write(self) -> Snapshot:
        snapshot = await Served(self.log, None).store.latest(self.log)
        self.manifest = write_index(self.state, self.log.location, snapshot)
        return snapshot

    def key(self, name: str) -> str:
        [found] = [key for key in self.state.entries if key.endswith(name)]
        return found

    def change(self, name: str, change: Callable[[bytes], bytes]) -> None:
        key = self.key(name)
        put(self.state, key, change(self.state.entries[key][0]))

    def lie(self, **said: Any) -> None:
        """Publish a manifest that says otherwise."""
        publish(self.state, self.log.location, "i1", {**self.manifest, **said})

    def lie_of_zones(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Publish other zones, under a checksum that fits them."""
        key = self.key("zones/part-00000.parquet")
        content = to_parquet(change(pl.read_parquet(io.BytesIO(self.state.entries[key][0]))))
        put(self.state, key, content)
        self.lie(zones={"key": self.manifest["zones"]["key"], **stored(content)})

    def lie_of_block(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Put another block in place of the second one, under a checksum that fits it."""
        key = self.key("part-00001.parquet")
        content = to_parquet(change(pl.read_parquet(io.BytesIO(self.state.entries[key][0]))))
        put(self.state, key, content)
        is_second = pl.col("file").str.ends_with("part-00001.parquet")
        facts = [
            pl.when(is_second).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
            for name, value in (("length", len(content)), ("sha256", stored(content)["sha256"]))
        ]
        self.lie_of_zones(lambda zones: zones.with_columns(facts))


@pytest.fixture(scope="module")
def whole() -> Spoiled:
    """The log and its index as they are before a test spoils its copy."""
    made = Spoiled()
    asyncio.run(made.write())
    return made


@pytest.fixture
def spoiled(whole) -> Spoiled:
    made = Spoiled()
    made.state.entries.update(whole.state.entries)
    made.manifest = copy.deepcopy(whole.manifest)
    return made


async def check(spoiled: Spoiled, outcome: str) -> Served:
    """Check that the log answers, and that it was counted why."""
    served = Served(spoiled.log, spoiled.state)
    expected = await Served(spoiled.log, None).query()
    found = await served.query()
    assert (found.head.lines, lines_of(found)) == (expected.head.lines, lines_of(expected))
    assert {word for word in served.metrics.indexes if word != "used"} == {outcome}
    assert (await served.store.latest(spoiled.log)).indexed is None
    return served


async def test_without_a_fault_the_index_answers(spoiled):
    served = Served(spoiled.log, spoiled.state)
    assert lines_of(await served.query()) == lines_of(await Served(spoiled.log, None).query())
    assert served.metrics.indexes == ["used"]
    assert (await served.store.latest(spoiled.log)).indexed is not None


async def test_without_a_pointer_there_is_none(spoiled):
    del spoiled.state.entries[spoiled.key(CURRENT)]
    await check(spoiled, "none")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format":2}', b'{"format":1}', b"\xff", b"[" * 100_000],
    ids=["empty", "cut", "list", "null", "format", "nothing", "bytes", "deep"],
)
async def test_a_pointer_that_is_none_is_corrupt(spoiled, content):
    put(spoiled.state, spoiled.key(CURRENT), content)
    await check(spoiled, "corrupt")


async def test_a_pointer_of_another_format_is_corrupt(spoiled):
    spoiled.change(CURRENT, lambda content: json.dumps({**json.loads(content), "format": 9}).encode())
    await check(spoiled, "corrupt")


@pytest.mark.parametrize("name", ["../i1", "/i1", "i1/../i1", "", "i 1"])
async def test_a_pointer_leads_nowhere_else(spoiled, name):
    spoiled.change(CURRENT, lambda content: json.dumps({**json.loads(content), "name": name}).encode())
    await check(spoiled, "corrupt")


@pytest.mark.parametrize("name", [MANIFEST, "zones/part-00000.parquet", "part-00001.parquet"])
async def test_a_file_that_is_gone_is_missing(spoiled, name):
    del spoiled.state.entries[spoiled.key(name)]
    await check(spoiled, "missing")


@pytest.mark.parametrize(
    ("name", "outcome"),
    [(MANIFEST, "corrupt"), ("zones/part-00000.parquet", "corrupt"), ("part-00001.parquet", "missing")],
)
async def test_a_file_that_was_cut_short_is_found_out(spoiled, name, outcome):
    spoiled.change(name, lambda content: content[:-1])
    await check(spoiled, outcome)


@pytest.mark.parametrize("name", [MANIFEST, "zones/part-00000.parquet", "part-00000.parquet"])
async def test_a_file_with_another_byte_is_corrupt(spoiled, name):
    key = next(key for key in spoiled.state.entries if key.endswith(name))
    content = bytearray(spoiled.state.entries[key][0])
    content[len(content) // 2] ^= 1
    put(spoiled.state, key, bytes(content))
    await check(spoiled, "corrupt")


@pytest.mark.parametrize(
    "said",
    [
        {"num_files": 8},
        {"size": 1},
        {"vectors": 99},
        {"protocol": {}, "metaData": {}},
        {"metaData": {"id": "t"}},
        {"columns": [{"path": []}]},
        {"columns": "all"},
        {"anchor": {"name": "x", "size": 1, "modified_at_ms": 10**20}},
        {"format": 9},
    ],
    ids=str,
)
async def test_a_manifest_that_contradicts_itself_is_corrupt(spoiled, said):
    spoiled.lie(**said)
    await check(spoiled, "corrupt")


@pytest.mark.parametrize(
    "change",
    [
        lambda zones: zones.reverse(),
        lambda zones: zones.drop("odd"),
        lambda zones: zones.head(2),
        lambda zones: zones.with_columns(rows=pl.lit(2**40)),
        lambda zones: zones.with_columns(file=pl.lit("../../x")),
        lambda zones: zones.with_columns(file=pl.lit(zones["file"][0])),
        lambda zones: zones.with_columns(last_path=pl.lit(None, pl.String)),
        lambda zones: zones.with_columns(first_path=pl.lit("zzz")),
    ],
    ids=["order", "column", "less", "rows", "out", "twice", "null", "ends"],
)
async def test_zones_that_make_up_no_index_are_corrupt(spoiled, change):
    spoiled.lie_of_zones(change)
    await check(spoiled, "corrupt")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.sort("path", descending=True),
        lambda rows: rows.head(2),
        lambda rows: rows.drop("stats"),
        lambda rows: rows.with_columns(size=pl.col("size") + 1),
        lambda rows: rows.with_columns(path=pl.lit("x")),
        lambda rows: rows[[0, 0, 2]],
    ],
    ids=["order", "less", "column", "size", "path", "twice"],
)
async def test_a_block_that_is_not_its_zone_s_is_corrupt(spoiled, change):
    spoiled.lie_of_block(change)
    served = Served(spoiled.log, spoiled.state)
    expected = await Served(spoiled.log, None).pages(max_files=50)
    # A page is found before its first line, and so is what is wrong with it.
    found = await served.pages(max_files=50)
    assert [page.lines for page in found] == [page.lines for page in expected]
    assert served.metrics.indexes == ["used", "corrupt"]


async def test_a_block_that_is_lost_in_the_middle_ends_the_answer_and_the_next_is_whole(spoiled):
    served = Served(spoiled.log, spoiled.state, blocks=1)
    await served.store.latest(spoiled.log)
    spoiled.change("part-00002.parquet", lambda content: b"x" * len(content))
    assert isinstance(await served.error(), Unavailable)
    assert lines_of(await served.query()) == lines_of(await Served(spoiled.log, None).query())
    assert served.metrics.indexes == ["used", "corrupt", "corrupt"]


async def test_an_index_of_another_place_is_stale(spoiled):
    spoiled.lie(location="0" * 64)
    await check(spoiled, "stale")


async def test_an_index_of_a_log_that_was_written_anew_is_stale(spoiled):
    name = commit_name(spoiled.history.version)
    spoiled.history.reader.put(name, spoiled.history.reader.files[name] + b"\n")
    await check(spoiled, "stale")


async def test_an_index_whose_commits_since_are_gone_is_stale(spoiled):
    spoiled.history.commit(3)
    spoiled.history.commit(3)
    direct = await Served(spoiled.log, None).query()
    reader = spoiled.history.reader
    # As a clean-up leaves it: a checkpoint, and what came after the first commit since.
    table = [{name: spoiled.manifest[name]} for name in ("protocol", "metaData")]
    [content] = to_checkpoint([*table, *({"add": add} for add in spoiled.history.live.values())])
    reader.put(checkpoint_name(spoiled.history.version), content)
    reader.remove(commit_name(spoiled.history.version - 1))
    served = Served(spoiled.log, spoiled.state)
    assert (await served.query()).metadata["numFiles"] == direct.metadata["numFiles"]
    assert served.metrics.indexes == ["stale"]


async def test_an_index_of_a_version_that_the_log_does_not_have_is_stale_and_told_of(spoiled, caplog):
    spoiled.history.reader.remove(commit_name(spoiled.history.version))
    with caplog.at_level(logging.WARNING):
        await check(spoiled, "stale")
    assert [record.reason for record in caplog.records if hasattr(record, "reason")] == ["stale"]


async def test_an_index_that_is_far_behind_is_old(spoiled):
    spoiled.history.commit(40)
    served = Served(spoiled.log, spoiled.state, many_steps=10)
    await served.query()
    assert served.metrics.indexes == ["old"]
    served = Served(spoiled.log, spoiled.state, many_steps=10**6)
    await served.query()
    assert served.metrics.indexes == ["used"]


async def test_a_store_that_does_not_answer_is_no_reason_to_fail(spoiled):
    spoiled.state.fail_next("get")
    await check(spoiled, "unavailable")


@pytest.mark.parametrize("asked", [{}, {"max_files": 4}], ids=["all", "page"])
async def test_the_log_answers_as_long_as_no_block_can_be_read(spoiled, asked):
    async def fail(method: str, key: str) -> None:
        if "/blocks/" in key:
            raise Unavailable("the state is asked too often; try again later")

    spoiled.state.before = fail
    served = Served(spoiled.log, spoiled.state)
    expected = bytes_of(await Served(spoiled.log, None).pages(**asked))
    for _ in range(2):
        assert bytes_of(await served.pages(**asked)) == expected
    assert served.metrics.indexes == ["used", "unavailable"]


async def test_nobody_asks_for_an_index_of_a_small_log(spoiled):
    served = Served(spoiled.log, spoiled.state, small_log=2**20)
    await served.query()
    assert spoiled.state.calls == []
    assert served.metrics.indexes == []


async def test_what_is_wrong_is_told_once(spoiled, caplog):
    spoiled.lie(num_files=8)
    # Without memory for snapshots, each query looks for the index.
    served = Served(spoiled.log, spoiled.state, memory=2**16, blocks=2**16)
    with caplog.at_level(logging.WARNING):
        for version in range(spoiled.history.version, spoiled.history.version + 3):
            spoiled.history.commit(1)
            assert (await served.query()).head.version == version + 1
    assert served.metrics.indexes == ["corrupt"] * 3
    told = [record for record in caplog.records if record.message == "a table's index is not used"]
    assert len(told) == 1
    assert told[0].reason == "corrupt"
