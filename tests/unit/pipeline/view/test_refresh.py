"""When a refresh finds nothing to do."""

from __future__ import annotations

from pipeline.view.plan import Shown, SourceState, SourceTable, ViewPlan
from pipeline.view.refresh import unchanged
from tests.cases import each_case

SOURCES = {"a.b.c": SourceState(version=7, id="x")}


@each_case(
    ("timed", "version", "expected"), [(False, 7, "none"), (False, 8, None), (True, 7, None), (True, 8, None)]
)
def test_a_view_that_asks_for_the_time_is_made_again_though_its_sources_stand_still(timed, version, expected):
    plan = ViewPlan(
        query="SELECT 1",
        sources=(SourceTable(name="a.b.c", url="s3a://lake/c"),),
        appendable=False,
        timed=timed,
        root_url="s3a://views/print",
        current=Shown(name="one", version=3, sources=SOURCES),
        fresh_name="two",
        app_id="print",
    )

    result = unchanged(plan, {"a.b.c": SourceState(version=version, id="x")})

    assert (result.kind if result else None) == expected
