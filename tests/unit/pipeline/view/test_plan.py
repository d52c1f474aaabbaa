from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import InvalidArgument
from pipeline.view.plan import Shown, SourceState, ViewResult, read_view_plan
from tests.cases import each_case

PLAN: dict[str, Any] = {
    "query": "SELECT 1",
    "sources": [{"name": "a.b.c", "url": "s3a://lake/c"}],
    "parameters": {"property_0": "emea", "property_1": None},
    "appendable": True,
    "root_url": "s3a://views/print/",
    "current": {"name": "one", "version": 3, "sources": {"a.b.c": {"version": 7, "id": "x"}}},
    "fresh_name": "two",
    "app_id": "print",
    "delete": ["zero"],
}


def test_a_plan_is_read():
    plan = read_view_plan(PLAN)
    assert plan.current == Shown(name="one", version=3, sources={"a.b.c": SourceState(version=7, id="x")})
    assert plan.parameters == {"property_0": "emea", "property_1": None}
    assert plan.url("two") == "s3a://views/print/two"


def test_former_showings_lie_beside_the_present_one():
    assert read_view_plan(PLAN | {"former": ["earlier"]}).former_url("earlier") == "s3a://views/earlier"


def test_the_first_plan_shows_nothing_yet():
    assert read_view_plan(PLAN | {"current": None}).current is None


def test_a_plan_of_before_queries_with_a_clock_were_told_apart_is_read():
    assert read_view_plan(PLAN).timed is False
    assert read_view_plan(PLAN | {"timed": True}).timed is True


def test_what_a_recipient_is_does_not_print():
    assert "emea" not in repr(read_view_plan(PLAN))


@each_case(
    ("changes", "message"),
    [
        ({"sources": []}, "plan.sources is empty"),
        ({"sources": [{"name": "a.b.c"}]}, r"plan.sources\[0\].url is missing"),
        ({"parameters": {"x; DROP": "y"}}, "which is no name of a parameter"),
        ({"fresh_name": "../two"}, "'../two' is not the name of a directory"),
        ({"fresh_name": ""}, "'' is not the name of a directory"),
        ({"delete": [".."]}, "'..' is not the name of a directory"),
        ({"delete": ["_delta_log"]}, "'_delta_log' is not the name of a directory"),
        ({"delete": ["a\\b"]}, "is not the name of a directory"),
        ({"keep": ["a/b"]}, "'a/b' is not the name of a directory"),
        ({"fresh_name": "one"}, "plan.fresh_name is the directory that is shown now"),
        ({"delete": ["one"]}, "plan.delete names one, which is still needed"),
        ({"delete": ["two"]}, "plan.delete names two, which is still needed"),
        ({"delete": ["kept"], "keep": ["kept"]}, "plan.delete names kept, which is still needed"),
        ({"former": ["../lake"]}, "'../lake' is not the name of a directory"),
        ({"former": ["print"]}, "plan.former names what the view is shown in now"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        read_view_plan(PLAN | changes)


def test_a_result_is_json():
    result = ViewResult(
        name="two",
        version=0,
        sources={"a.b.c": SourceState(version=8, id="x")},
        rows_added=2,
        rows=2,
        kind="full",
        deleted=("zero",),
    )
    assert json.loads(json.dumps(result.as_json())) == {
        "name": "two",
        "version": 0,
        "sources": {"a.b.c": {"version": 8, "id": "x"}},
        "rows_added": 2,
        "rows": 2,
        "kind": "full",
        "deleted": ["zero"],
        "forgotten": [],
    }
