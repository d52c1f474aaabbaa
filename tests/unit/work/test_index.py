from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.domain.index import CURRENT, MANIFEST, LogPlan, prefix_of, table_key
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.domain.location import parse_location
from gateway.errors import NotFound
from gateway.work.index import IndexCraft, IndexedTable, IndexHome, IndexSizes, LogPlanner
from gateway.work.places import SparkPlaces
from tests.cases import each_case
from tests.fakes.state_store import FakeStateStore
from tests.fakes.storages import FakeStorages

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
TABLE = parse_location("s3://lake/sales/orders")
PREFIX = prefix_of(TABLE)
JOB = Job(
    key=JobKey(kind=JobKind.INDEX, subject="retail.sales.orders"),
    sequence=1,
    state=JobState.RUNNING,
    requested_at=NOON,
)
LOG = LogPlan(
    version=7,
    anchor="00000000000000000007.json",
    anchor_size=12,
    anchor_at=NOON,
    checkpoint=("00000000000000000005.checkpoint.parquet",),
    sidecars=(),
    commits=("00000000000000000006.json", "00000000000000000007.json"),
    size=10_000,
)
RESULT: dict[str, Any] = {
    "num_files": 3,
    "size": 30,
    "vectors": 0,
    "columns": [],
    "zones": {"key": "name/zones/z.parquet", "size": 1, "sha256": "0" * 64},
    "protocol": {"minReaderVersion": 1},
    "metaData": {"id": "t"},
    "blocks": 1,
    "uses": ["name"],
}


TABLES = (
    IndexedTable(name="retail.sales.orders", location=TABLE, every=timedelta(hours=1)),
    IndexedTable(name="retail.sales.small", location=parse_location("s3://lake/small")),
)


class Shop:
    def __init__(
        self,
        *,
        small_log: int = 100,
        state: FakeStateStore | None = None,
        tables: Sequence[IndexedTable] = TABLES,
    ) -> None:
        self.now = NOON
        self.state = state or FakeStateStore(clock=lambda: self.now)
        self.whole = LOG
        self.since: LogPlan | None = None
        # The version, and the file's size and time, of each question about what came since.
        self.asked: list[tuple[int, int, datetime]] = []
        self.craft = IndexCraft(
            home=IndexHome(state=self.state, location=parse_location("s3://state/sluice")),
            places=SparkPlaces(FakeStorages()),
            planner=LogPlanner(whole=self._whole, since=self._since),
            tables=tables,
            clock=lambda: self.now,
            sizes=IndexSizes(small_log=small_log),
        )

    async def _whole(self, location):
        assert location == TABLE
        return self.whole

    async def _since(self, location, version, size, at):
        self.asked.append((version, size, at))
        return self.since

    async def plan(self) -> dict[str, Any]:
        plan = await self.craft.plan(JOB)
        assert plan is not None
        return dict(plan.body)

    async def publish(self, **changes: Any) -> str:
        """Plan and publish an index; return its name."""
        plan = await self.craft.plan(JOB)
        assert plan is not None
        name = plan.body["target_name"]
        zones = {**RESULT["zones"], "key": f"{name}/zones/z.parquet"}
        await self.craft.publish(JOB, plan, {**RESULT, "uses": [name], "zones": zones, **changes})
        return str(name)

    def pointer(self) -> dict[str, Any]:
        return dict(json.loads(self.state.entries[f"{PREFIX}{CURRENT}"][0]))


async def test_the_first_plan_is_of_the_whole_log():
    body = await Shop().plan()
    assert body["table_url"] == "s3a://lake/sales/orders"
    assert body["root_url"] == f"s3a://state/sluice/index/{table_key(TABLE)}"
    assert body["checkpoint"] == ["00000000000000000005.checkpoint.parquet"]
    assert body["commits"] == ["00000000000000000006.json", "00000000000000000007.json"]
    assert body["base"] is None
    assert (body["version"], body["anchor"]["name"]) == (7, "00000000000000000007.json")


async def test_each_attempt_writes_to_a_place_of_its_own():
    shop = Shop()
    assert (await shop.plan())["target_name"] != (await shop.plan())["target_name"]


async def test_the_plan_says_which_places_it_takes_access_to():
    plan = await Shop().craft.plan(JOB)
    assert plan is not None
    assert [location.text for location in plan.locations] == ["s3://lake/sales/orders", "s3://state/sluice"]


async def test_a_small_log_gets_no_index():
    shop = Shop(small_log=10_001)
    assert await shop.craft.plan(JOB) is None


async def test_what_is_published_is_in_force():
    shop = Shop()
    name = await shop.publish()
    assert (shop.pointer()["name"], shop.pointer()["version"], shop.pointer()["num_files"]) == (name, 7, 3)
    manifest = json.loads(shop.state.entries[f"{PREFIX}{name}/{MANIFEST}"][0])
    assert manifest["location"] == table_key(TABLE)
    assert manifest["anchor"] == {
        "name": "00000000000000000007.json",
        "size": 12,
        "modified_at_ms": 1748779200000,
    }


async def test_the_next_plan_is_of_what_came_since():
    shop = Shop()
    name = await shop.publish()
    shop.since = replace(LOG, version=9, checkpoint=(), commits=("00000000000000000008.json",), size=5)
    body = await shop.plan()
    assert shop.asked == [(7, 12, NOON)]
    assert (body["checkpoint"], body["commits"]) == ([], ["00000000000000000008.json"])
    assert (body["base"]["version"], body["base"]["zones"]) == (7, f"{name}/zones/z.parquet")


async def test_an_index_of_the_latest_version_is_not_made_again():
    shop = Shop()
    await shop.publish()
    shop.since = replace(LOG, checkpoint=(), commits=(), size=0)
    assert await shop.craft.plan(JOB) is None


async def test_a_log_whose_commits_do_not_lead_on_is_read_as_a_whole():
    shop = Shop()
    await shop.publish()
    assert (await shop.plan())["base"] is None


@pytest.mark.parametrize("changes", [{"blocks": 5}, {"uses": [str(n) for n in range(17)]}, {"num_files": 0}])
async def test_an_index_that_is_in_many_pieces_is_made_anew(changes):
    shop = Shop()
    await shop.publish(**changes)
    shop.since = replace(LOG, version=9, checkpoint=())
    assert (await shop.plan())["base"] is None


@each_case("content", [b"", b"[]", b'{"name":"x"}', b'{"name":"../x y"}'])
async def test_a_pointer_that_cannot_be_read_is_as_good_as_none(content):
    shop = Shop()
    shop.state.entries[f"{PREFIX}{CURRENT}"] = content, NOON
    assert (await shop.plan())["base"] is None
    name = await shop.publish()
    assert shop.pointer()["name"] == name


async def test_an_older_index_does_not_take_the_place_of_a_newer_one():
    shop = Shop()
    late = await shop.craft.plan(JOB)
    assert late is not None
    shop.whole = replace(LOG, version=8)
    name = await shop.publish()
    await shop.craft.publish(JOB, late, RESULT)
    assert shop.pointer()["name"] == name


async def test_an_index_of_a_table_that_was_made_anew_takes_the_place_of_the_old_one():
    shop = Shop()
    await shop.publish()
    shop.whole = replace(LOG, version=2)
    name = await shop.publish()
    assert (shop.pointer()["name"], shop.pointer()["version"]) == (name, 2)


async def test_publishing_twice_is_publishing_once():
    shop = Shop()
    plan = await shop.craft.plan(JOB)
    assert plan is not None
    await shop.craft.publish(JOB, plan, RESULT)
    before = dict(shop.state.entries)
    await shop.craft.publish(JOB, plan, RESULT)
    assert shop.state.entries == before


async def test_an_index_is_that_of_the_place_that_was_read_wherever_the_table_is_by_now():
    shop = Shop()
    plan = await shop.craft.plan(JOB)
    assert plan is not None
    moved = IndexedTable(name="retail.sales.orders", location=parse_location("s3://lake/moved"))

    await Shop(state=shop.state, tables=[moved]).craft.publish(JOB, plan, RESULT)

    assert shop.state.entries
    assert all(key.startswith(PREFIX) for key in shop.state.entries)


async def test_what_nobody_uses_goes_after_a_while():
    shop = Shop()
    first = await shop.publish()
    shop.state.entries[f"{PREFIX}{first}/blocks/a.parquet"] = b"x", NOON
    shop.state.entries[f"{PREFIX}killed/blocks/b.parquet"] = b"x", NOON
    shop.whole = replace(LOG, version=8)
    second = await shop.publish()
    assert f"{PREFIX}{first}/blocks/a.parquet" in shop.state.entries
    shop.now = NOON + timedelta(hours=7)
    shop.whole = replace(LOG, version=9)
    third = await shop.publish(uses=[second, "x"])
    names = {key.removeprefix(PREFIX).partition("/")[0] for key in shop.state.entries}
    # The second is still in use by the third.
    assert names == {CURRENT, second, third}


async def test_what_was_in_force_a_moment_ago_stays_for_a_while_however_old_it_is():
    shop = Shop()
    first = await shop.publish()
    block = f"{PREFIX}{first}/blocks/a.parquet"
    shop.state.entries[block] = b"x", NOON
    for hours, is_there in [(100, True), (103, True), (105, True), (107, False)]:
        shop.now = NOON + timedelta(hours=hours)
        shop.whole = replace(LOG, version=hours)
        await shop.publish()
        assert (block in shop.state.entries) == is_there, hours


async def test_a_table_that_is_not_configured_any_more_gets_no_index():
    job = replace(JOB, key=JobKey(kind=JobKind.INDEX, subject="retail.sales.gone"))
    with pytest.raises(NotFound):
        await Shop().craft.plan(job)


def test_tables_with_a_schedule_are_due_again_and_again():
    [one] = Shop().craft.scheduled()
    assert (one.wanted.key.subject, one.every) == ("retail.sales.orders", timedelta(hours=1))


def test_a_table_is_found_by_its_name_whatever_its_case():
    [one] = Shop().craft.named("Retail.Sales.ORDERS")
    assert one.key.subject == "retail.sales.orders"
    assert len(Shop().craft.named("")) == 2
    with pytest.raises(NotFound, match=r"no table retail\.sales\.other"):
        Shop().craft.named("retail.sales.other")
