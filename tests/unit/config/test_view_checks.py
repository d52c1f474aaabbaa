"""What is wrong with views besides their queries: names, places, and who lacks what they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.load import read

TOKENS = [{"hash": "sha256:" + "a" * 64}]


def draft(tmp_path: Path, *views: dict[str, Any], **others: Any):
    tables = [{"name": "t", "location": "s3://lake/t"}, {"name": "deep", "location": "s3://lake/a/b/deep"}]
    placed = [{"from": "s.d.t", "location": f"s3://lake/views/{view['name']}", **view} for view in views]
    settings = {
        "shares": [{"name": "s", "schemas": [{"name": "d", "tables": tables, "views": placed}]}],
        "storages": [{"name": "lake", "prefix": "s3://lake", "vendor": "aws"}],
        "recipients": [{"name": "ann", "tokens": TOKENS, "shares": ["s"]}],
        **others,
    }
    file = tmp_path / "server.yaml"
    file.write_text(yaml.safe_dump(settings))
    return read(file, {})


def faults(tmp_path: Path, *views: dict[str, Any], **others: Any) -> list[str]:
    return [str(fault) for fault in draft(tmp_path, *views, **others).faults]


def local_faults(tmp_path: Path, location: str, **others: Any) -> list[str]:
    schema = {
        "name": "d",
        "tables": [{"name": "t", "location": str(tmp_path / "lake" / "t")}],
        "views": [{"name": "v", "from": "s.d.t", "location": str(tmp_path / location)}],
    }
    settings = {
        "shares": [{"name": "s", "schemas": [schema]}],
        "storages": [{"name": "lake", "prefix": str(tmp_path), "vendor": "local"}],
        "recipients": [{"name": "ann", "tokens": TOKENS, "shares": ["s"]}],
        **others,
    }
    file = tmp_path / "server.yaml"
    file.write_text(yaml.safe_dump(settings))
    return [str(fault) for fault in read(file, {"HOME": str(tmp_path / "home")}).faults]


def test_a_view_in_a_place_of_its_own_is_fine(tmp_path):
    assert faults(tmp_path, {"name": "v"}, {"name": "w"}) == []


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("s3://lake/t", "here is the table s.d.t"),
        ("s3://lake/t/views", "here is the table s.d.t"),
        ("s3://lake/a", "here is the table s.d.deep"),
        ("s3://lake/views", "here is the view s.d.w"),
        ("s3://lake/views/w/x", "here is the view s.d.w"),
        ("s3://lake/views/w", "here is the view s.d.w"),
        ("s3://lake/state/x", "state.location"),
        ("s3://lake", "is the root of its bucket"),
        ("s3://elsewhere/v", "is below no prefix of storages"),
        ("s3://lake/../t", "must not contain"),
    ],
)
def test_a_view_lies_in_no_place_that_holds_or_opens_anything_else(tmp_path, location, words):
    found = faults(
        tmp_path, {"name": "v", "location": location}, {"name": "w"}, state={"location": "s3://lake/state"}
    )

    assert any("views[0].location" in fault and words in fault for fault in found)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("own", "stateDir"),
        ("own/state", "stateDir"),
        ("own/audit/views", "stateDir"),
        ("logs", "audit.directory"),
        ("logs/audit", "audit.directory"),
        ("logs/audit/views", "audit.directory"),
        ("home", "stateDir"),
        ("home/.local/state/sluice/state/x", "stateDir"),
    ],
)
def test_a_view_lies_in_no_directory_of_the_gateways_own(tmp_path, location, name):
    # Below the home where nobody has said.
    own = {} if location.startswith("home") else {"stateDir": str(tmp_path / "own")}
    found = local_faults(tmp_path, location, audit={"directory": str(tmp_path / "logs" / "audit")}, **own)

    assert any("views[0].location" in fault and f"here is {name}" in fault for fault in found)


def test_a_view_beside_the_directories_of_the_gateway_is_fine(tmp_path):
    assert local_faults(tmp_path, "views/v", stateDir=str(tmp_path / "own")) == []


def test_a_view_needs_a_storage_to_be_written_to(tmp_path):
    assert "needs an entry in storages" in faults(tmp_path, {"name": "v"}, storages=None)[0]


def test_tables_and_views_of_a_schema_have_names_of_their_own(tmp_path):
    (fault,) = faults(tmp_path, {"name": "T"})

    assert "is the name of shares[0].schemas[0].tables[0].name already" in fault


def test_a_view_is_written_in_one_of_two_ways(tmp_path):
    both = {"name": "v", "sql": "select * from s.d.t", "from": "s.d.t"}
    mixed = {"name": "v", "sql": "select * from s.d.t", "from": "", "filter": "a > 1"}

    assert "either sql, or from" in faults(tmp_path, both)[0]
    assert "either sql, or from" in faults(tmp_path, {"name": "v", "from": ""})[0]
    assert "belongs to from" in faults(tmp_path, mixed)[0]


@pytest.mark.parametrize(
    ("view", "path", "words"),
    [
        ({"from": "s.d"}, "from", "must be the name of a table or view"),
        ({"from": "s.d.x"}, "from", "there is no table or view"),
        ({"columns": ["a`b"]}, "columns[0]", "has a character"),
        ({"columns": ["_metadata"]}, "columns[0]", "is not a column"),
        ({"filter": "a = "}, "filter", "cannot be read"),
        ({"filter": "a = 1; drop table x"}, "filter", "cannot be read"),
        ({"filter": "a = 1 union select 2"}, "filter", "cannot be read"),
        ({"filter": "rand() > 0.5"}, "filter", "the function rand is not one"),
        ({"filter": "a in (select b from s.d.x)"}, "from", "there is no table or view 's.d.x'"),
    ],
)
def test_each_fault_is_told_where_it_stands(tmp_path, view, path, words):
    (fault,) = faults(tmp_path, {"name": "v", **view})

    assert f"views[0].{path}: " in fault
    assert words in fault


def test_who_may_see_a_view_without_what_it_asks_for_is_named(tmp_path):
    recipients = [
        {"name": "ann", "tokens": TOKENS, "shares": ["S"], "properties": {"tier": "1"}},
        {
            "name": "cleo",
            "tokens": [{"hash": "sha256:" + "b" * 64}],
            "shares": "*",
            "properties": {"region": "x"},
        },
        {"name": "dan", "tokens": [{"hash": "sha256:" + "c" * 64}], "shares": []},
        {"name": "eve", "tokens": [{"hash": "sha256:" + "d" * 64}], "shares": "*", "disabled": True},
    ]
    found = draft(tmp_path, {"name": "v", "filter": "r = current_recipient('region')"}, recipients=recipients)

    assert found.faults == ()
    (warning,) = [words for words in found.warnings if "region" in words]
    assert "which ann may see it without" in warning
    assert "cleo" not in warning
