from __future__ import annotations

import json
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from pipeline.usage.odd_line import read_line
from pipeline.usage.schema import columns_of
from tests.cases import each_case
from tests.fakes.audit_lines import MALFORMED, Story

BARE = {"schema_version": 1, "id": "a", "at": "2026-11-16T23:30:00-01:00"}


@each_case("line", MALFORMED, ids=lambda line: repr(line[:60]))
def test_malformed_line_is_no_event_and_says_why(line):
    found = read_line(line)
    assert found["reason"] == MALFORMED[line]
    assert "id" not in found


def test_reason_names_the_fields():
    line = json.dumps(BARE | {"files": "x", "mode": 3}).encode()
    assert (read_line(line)["reason"], read_line(line)["detail"]) == ("bad_type", "files, mode")


def test_event_of_few_fields_has_all_columns():
    found = read_line(json.dumps(BARE).encode())
    assert sorted(found) == sorted(columns_of("events"))
    assert found["at"] == datetime(2026, 11, 17, 0, 30, tzinfo=UTC)
    assert (found["day"], found["files"], found["principal"]) == (date(2026, 11, 17), 0, "")
    assert (found["version"], found["locations"], found["expires_at"]) == (None, [], None)


def test_fields_that_nobody_knows_yet_are_kept_as_json():
    found = read_line(json.dumps(BARE | {"region": "eu", "cost": {"cents": [1, None]}}).encode())
    assert found["more"] == {"region": '"eu"', "cost": '{"cents":[1,null]}'}


def test_half_of_a_surrogate_pair_becomes_a_letter_that_a_column_can_hold():
    found = read_line(b'{"schema_version":1,"id":"\\ud800","at":"2026-11-16T00:00:00Z"}')
    assert found["id"] == "\ufffd"


@each_case("line", Story(7).lines(20))
def test_lines_of_a_gateway_are_events(line):
    found, told = read_line(line), json.loads(line)
    assert "reason" not in found
    assert {name: found[name] for name in ("id", "kind", "principal", "files", "locations")} == {
        name: told[name] for name in ("id", "kind", "principal", "files", "locations")
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.sampled_from([*columns_of("events"), "new"]), JSON, max_size=8)


@given(fields=FIELDS)
def test_whatever_the_fields_hold_a_line_is_an_event_or_has_a_reason(fields):
    found = read_line(json.dumps(BARE | fields).encode())
    assert ("reason" in found) != ("id" in found)
    for text in (value for value in found.values() if isinstance(value, str)):
        text.encode()


@given(line=st.binary(max_size=60))
def test_whatever_the_bytes_are_a_line_has_a_reason(line):
    assert "reason" in read_line(line)
