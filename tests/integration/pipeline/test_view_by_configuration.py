"""From a view in a configuration to rows: planned by the gateway's side, made by Spark, and published."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.catalog_yaml import build_index
from gateway.adapters.view_index import CatalogShowings
from gateway.config.schema import Config
from gateway.domain.job import Job, JobState
from gateway.domain.manifest import decode_manifest, manifest_key
from gateway.domain.name import TableName
from gateway.domain.view_job import view_job_key, view_job_parameters
from gateway.ports import utcnow
from gateway.work.view import Lives, ViewCraft
from pipeline.jobs import view
from pipeline.progress import ignore
from tests.components import SPARK_PIPELINE
from tests.fakes.state_store import FakeStateStore
from tests.spark import create_delta, rows_of
from tests.view_worker import NoStorages

pytestmark = pytest.mark.component(SPARK_PIPELINE)


class Lake:
    """A configuration of tables and views on this disk, and what of it was made."""

    def __init__(self, spark: Any, directory: Path, **views: str) -> None:
        self.spark = spark
        schema = {
            "name": "eu",
            "tables": [{"name": "orders", "location": str(directory / "orders")}],
            "views": [
                {"name": name, "sql": sql, "location": str(directory / "views" / name)}
                for name, sql in views.items()
            ],
        }
        recipients = [
            {"name": "ann", "shares": "*", "properties": {"region": "it's ${x}"}},
            {"name": "cleo", "shares": "*", "properties": {"region": "apac"}},
            {"name": "dan", "shares": "*"},
        ]
        shares = [{"name": "my-sales", "schemas": [schema]}]
        self.index = build_index(Config.model_validate({"shares": shares, "recipients": recipients}))
        self.views = CatalogShowings(lambda: self.index)
        self.state = FakeStateStore()
        lives = Lives(urls=timedelta(hours=1), runs=timedelta(hours=1))
        self.craft = ViewCraft(
            views=self.views, state=self.state, storages=NoStorages(), lives=lives, clock=utcnow
        )

    def refresh(self, name: str, recipient: str = "") -> tuple[str, list[tuple[Any, ...]]]:
        """Refresh a showing as a worker does, and return what kind of refresh it was, and its rows."""
        showing = self.views.find(TableName("my-sales", "eu", name), recipient)
        assert showing is not None
        job = Job(
            key=view_job_key(showing),
            sequence=1,
            state=JobState.RUNNING,
            parameters=view_job_parameters(showing),
            requested_at=utcnow(),
        )
        job = replace(job, started_at=utcnow())
        plan = asyncio.run(self.craft.plan(job))
        assert plan is not None
        result = view.run(self.spark, plan.body, ignore)
        asyncio.run(self.craft.publish(job, plan, result))
        content = self.state.entries[manifest_key(showing.fingerprint)][0]
        place = decode_manifest(content, showing).materialisation(showing.view.root).location
        return result["kind"], sorted(rows_of(self.spark, Path("/", place.path)))


def test_recipients_are_shown_their_rows_and_new_ones_are_appended(spark, tmp_path):
    orders = create_delta(spark, tmp_path / "orders", "id int, region string")
    # The text of the insert is itself formatted: its signs by their numbers.
    orders.insert("(1, concat('it', char(39), 's $', char(123), 'x', char(125))), (2, 'apac'), (3, null)")
    lake = Lake(
        spark, tmp_path, mine="select id from `my-sales`.eu.orders where region = current_recipient('region')"
    )

    assert lake.refresh("mine", "ann") == ("full", [(1,)])
    assert lake.refresh("mine", "cleo") == ("full", [(2,)])
    assert lake.refresh("mine", "dan") == ("full", [])
    orders.insert("(4, 'apac'), (5, 'emea')")
    assert lake.refresh("mine", "cleo") == ("append", [(2,), (4,)])
    assert lake.refresh("mine", "cleo") == ("none", [(2,), (4,)])


def test_a_view_upon_a_view_with_common_table_expressions_called_like_sources_is_what_it_says(
    spark, tmp_path
):
    orders = create_delta(spark, tmp_path / "orders", "id int, region string")
    orders.insert("(1, 'a'), (2, 'b'), (3, 'b')")
    lake = Lake(
        spark,
        tmp_path,
        below="select id, upper(region) as region from `my-sales`.eu.orders where id > 1",
        above=(
            "with source_0 as (select region, count(*) as n from `my-sales`.eu.below group by region), "
            "query_0 as (select * from source_0) "
            "select source_0.region, source_0.n, o.id from source_0 join query_0 using (region) "
            "join `my-sales`.eu.orders as o on upper(o.region) = source_0.region"
        ),
    )

    assert lake.refresh("above") == ("full", [("B", 2, 2), ("B", 2, 3)])
