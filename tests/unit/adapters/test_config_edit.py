from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.config_edit import (
    Changed,
    ConfigText,
    NotEditable,
    Values,
    replace_file,
    snippet,
    with_values,
)
from gateway.config.document import parse_document
from tests.cases import each_case

VALUES: Values = {"disabled": True, "revokedAt": "2030-01-01T12:00:00Z"}
ACME = ("recipients", 0)


def test_lines_are_added_behind_the_name_and_nothing_else_changes():
    text = """\
# Ours.
recipients:
  - name: acme   # the first customer

    # Given by hand.
    tokens: []
    shares: [sales]
  - name: globex
    shares: [sales]
"""
    assert with_values(text, ACME, VALUES) == text.replace(
        "customer\n", "customer\n    disabled: true\n    revokedAt: 2030-01-01T12:00:00Z\n"
    )


def test_values_that_stand_there_are_replaced_in_their_place():
    text = """\
recipients:
- revokedAt: "2029-01-01T00:00:00Z"  # the leak
  shares: "*"
  disabled: false # for now
  name: acme
"""
    assert with_values(text, ACME, VALUES) == text.replace(
        '"2029-01-01T00:00:00Z"', "2030-01-01T12:00:00Z"
    ).replace("false", "true")


def test_key_without_a_value_gets_one():
    text = "recipients:\n- name: acme\n  revokedAt:\n  disabled: ~\n"
    assert with_values(text, ACME, VALUES) == (
        "recipients:\n- name: acme\n  revokedAt: 2030-01-01T12:00:00Z\n  disabled: true\n"
    )


def test_file_without_a_last_line_end_is_continued():
    text = "recipients:\n- name: acme"
    assert with_values(text, ACME, {"disabled": True}) == "recipients:\n- name: acme\n  disabled: true"


def test_windows_line_ends_stay():
    text = "recipients:\r\n- name: acme\r\n  shares: []\r\n"
    assert with_values(text, ACME, {"disabled": True}) == (
        "recipients:\r\n- name: acme\r\n  disabled: true\r\n  shares: []\r\n"
    )


def test_byte_order_mark_and_letters_of_any_size_do_not_shift_the_place():
    text = "\ufeff# 🚰 Grüße\nrecipients:\n- name: 東京 🚰\n  shares: []\n"
    assert with_values(text, ACME, {"disabled": True}) == text.replace("🚰\n  s", "🚰\n  disabled: true\n  s")


def test_flow_style_is_continued_in_flow_style():
    text = "recipients: [{name: acme, shares: ['*'],}, {name: globex}]  # short\n"
    assert with_values(text, ACME, VALUES) == (
        'recipients: [{name: acme, "disabled": true, "revokedAt": "2030-01-01T12:00:00Z", shares: [\'*\'],},'
        " {name: globex}]  # short\n"
    )


def test_json_stays_json():
    text = '{"recipients": [{"name": "acme", "disabled": false}]}'
    assert with_values(text, ACME, {"disabled": True}) == text.replace("false", "true")


def test_entry_that_merges_another_is_changed_alone():
    text = """\
recipients:
- &base
  name: globex
  shares: [sales]
- <<: *base
  name: acme
"""
    assert with_values(text, ("recipients", 1), {"disabled": True}) == text + "  disabled: true\n"


@each_case(
    "text",
    [
        pytest.param("recipients:\n- &a\n  name: acme\n- <<: *a\n  name: globex\n", id="merged by another"),
        pytest.param("x: &a {name: acme}\nrecipients:\n- *a\n", id="an alias"),
        pytest.param("recipients:\n- name: |\n    acme\n", id="no simple value to stand behind"),
        pytest.param("recipients:\n- ? name\n  : acme\n", id="explicit keys"),
        pytest.param("recipients:\n- acme\n", id="not a mapping"),
        pytest.param("recipients: []\n", id="not there"),
        pytest.param("other: 1\n", id="no such list"),
        pytest.param("", id="empty"),
        pytest.param("recipients:\n- name: acme\n  disabled: &no false\n  other: *no\n", id="anchored value"),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text):
    with pytest.raises(NotEditable, match=r"recipients\[0\]"):
        with_values(text, ACME, VALUES)


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@given(st.lists(names, min_size=1, max_size=4), st.data())
def test_only_the_wanted_entry_changes(all_names, data):
    number = data.draw(st.integers(0, len(all_names) - 1))
    quoted = [name.replace("'", "''") for name in all_names]
    text = "recipients:\n" + "".join(f"  - name: '{name}' # it\n    shares: []\n" for name in quoted)

    edited = with_values(text, ("recipients", number), VALUES)

    document = parse_document(edited)
    expected: Any = parse_document(text)
    expected["recipients"][number] |= {"disabled": "true", "revokedAt": "2030-01-01T12:00:00Z"}
    assert document == expected
    kept = [line for line in edited.splitlines(keepends=True) if not line.startswith(("    dis", "    rev"))]
    assert "".join(kept) == text


def test_change_can_be_read_by_a_person():
    assert snippet("recipients", "acme", VALUES) == (
        "  recipients, the entry named acme:\n    disabled: true\n    revokedAt: 2030-01-01T12:00:00Z"
    )


def test_file_is_replaced_with_its_mode_and_through_its_link(tmp_path):
    file, link = tmp_path / "real.yaml", tmp_path / "server.yaml"
    file.write_bytes(b"a: 1\r\n")
    file.chmod(0o640)
    link.symlink_to(file)

    replace_file(ConfigText.read(link), "a: 2\r\n")

    assert link.is_symlink()
    assert file.read_bytes() == b"a: 2\r\n"
    assert file.stat().st_mode & 0o7777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["real.yaml", "server.yaml"]


def test_file_that_somebody_else_has_changed_is_left_alone(tmp_path):
    file = tmp_path / "server.yaml"
    file.write_text("a: 1\n")
    old = ConfigText.read(file)
    file.write_text("a: 3\n")

    with pytest.raises(Changed):
        replace_file(old, "a: 2\n")

    assert file.read_text() == "a: 3\n"
    assert list(tmp_path.iterdir()) == [file]
