from __future__ import annotations

from gateway.adapters.storage_tables import find_placed
from gateway.config.broken import Broken
from gateway.config.checks.storage import location_or_none
from tests.unit.adapters.storage_configs import config

TABLES = ("shares", 0, "schemas", 0, "tables")


def test_every_location_is_found_with_its_place_and_how_it_is_offered():
    shared = config(
        {"location": "s3://a/x", "auxiliaryLocations": ["s3://b/x", "gs://c/x"], "accessModes": ["dir"]}, "/y"
    )

    assert [(p.path, p.table, str(p.location), p.modes) for p in find_placed(shared, Broken())] == [
        ((*TABLES, 0, "location"), "s.d.t0", "s3://a/x", ("dir",)),
        ((*TABLES, 0, "auxiliaryLocations", 0), "s.d.t0", "s3://b/x", ("dir",)),
        ((*TABLES, 0, "auxiliaryLocations", 1), "s.d.t0", "gs://c/x", ("dir",)),
        ((*TABLES, 1, "location"), "s.d.t1", "/y", ("url",)),
    ]


def test_a_share_says_how_its_tables_are_offered_unless_they_say_it_themselves():
    shared = config("/a", {"location": "/b", "accessModes": ["url"]}, accessModes=["dir", "url"])

    assert [placed.modes for placed in find_placed(shared, Broken())] == [("dir", "url"), ("url",)]


def test_what_is_made_up_or_no_location_is_left_out():
    shared = config("/a", {"location": "/b", "auxiliaryLocations": ["no location", "/c"]}, "/d")
    broken = Broken([(*TABLES, 0, "location"), (*TABLES, 2, "accessModes", 0)])

    assert [str(placed.location) for placed in find_placed(shared, broken)] == ["/b", "/c"]


def test_a_text_that_is_no_location_is_none():
    assert location_or_none("ftp://x") is None
