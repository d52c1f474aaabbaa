from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.comparison.answer import FileEntry
from gateway.commands.comparison.files import compare_files
from tests.cases import each_case


def file(key: str, **changes: object) -> FileEntry:
    fields: dict[str, Any] = {
        "id": key,
        "url": f"https://h/t/{key}.parquet?sig=x",
        "size": 10,
        "partition_values": {"p": "1"},
        "stats": '{"numRecords":1}',
        "expires": False,
    }
    return FileEntry(**{**fields, **changes})


def found(old: list[FileEntry], new: list[FileEntry]) -> list[tuple[str, str, object, object, str]]:
    return [
        (item.weight.value, item.what, item.old, item.new, item.detail)
        for item in compare_files("t", old, new)
    ]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.randoms())
def test_the_order_of_files_does_not_matter(keys, random):
    shuffled = keys[:]
    random.shuffle(shuffled)
    assert found([file(key) for key in keys], [file(key) for key in shuffled]) == []


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_files_differ_if_and_only_if_their_ids_do(old, new):
    findings = found([file(f"f{key}") for key in old], [file(f"f{key}") for key in new])
    assert bool(findings) == (old != new)


def test_files_on_one_side_are_counted_with_examples():
    new = [file(f"n{number}") for number in range(5)]
    (_, what, _, _, detail), (_, _, _, _, other) = found([file("a")], new)
    assert what == "files"
    assert detail == "1 (a) of 1 only in old"
    assert other == "5 (n0, n1, n2, ...) of 5 only in new"


@each_case(
    ("change", "what", "old", "new"),
    [
        ({"size": 11}, "file.size", 10, 11),
        ({"size": None}, "file.size", 10, None),
        ({"partition_values": {"p": "2"}}, "file.partitionValues.p", "1", "2"),
        ({"stats": '{"numRecords":2}'}, "file.stats.numRecords", 1, 2),
    ],
)
def test_a_changed_field_is_a_difference(change, what, old, new):
    findings = found([file("a"), file("b")], [file("a", **change), file("b", **change)])
    assert findings == [("difference", what, old, new, "2 files, e.g. a")]


def test_a_null_partition_and_an_empty_one_are_a_note():
    one, other = file("a", partition_values={"p": None}), file("a", partition_values={"p": ""})
    assert [item[:2] for item in found([one], [other])] == [("note", "file.partitionValues.p")]


def test_a_partition_value_that_is_missing_is_a_difference():
    assert [item[0] for item in found([file("a")], [file("a", partition_values={})])] == ["difference"]


def test_a_partition_value_of_a_strange_kind_is_compared():
    one, other = file("a", partition_values={"p": ["x"]}), file("a", partition_values={"p": {"y": 1}})
    assert [item[0] for item in found([one], [other])] == ["difference"]


def test_stats_are_compared_as_values():
    one = file("a", stats='{"numRecords":1,"minValues":{"x":1.0}}')
    other = file("a", stats='{ "minValues": {"x": 1}, "numRecords": 1 }')
    assert found([one], [other]) == []


@pytest.mark.parametrize(("old", "new"), [(None, ""), ("", None)])
def test_absent_stats_equal_empty_ones(old, new):
    assert found([file("a", stats=old)], [file("a", stats=new)]) == []


def test_stats_that_the_new_server_lost_are_a_difference_and_gained_ones_are_not():
    with_stats, without = file("a"), file("a", stats=None)
    assert [item[0] for item in found([with_stats], [without])] == ["difference"]
    assert [item[0] for item in found([without], [with_stats])] == ["only in new"]


def test_an_expiration_is_compared_by_presence():
    assert [item[0] for item in found([file("a")], [file("a", expires=True)])] == ["only in new"]
    assert [item[0] for item in found([file("a", expires=True)], [file("a")])] == ["difference"]


def test_urls_are_not_compared():
    assert found([file("a")], [file("a", url="https://elsewhere/x?sig=y")]) == []


def test_repeated_ids_are_a_difference():
    assert [item[4] for item in found([file("a")], [file("a"), file("a")])] == ["1 (a) repeated in new"]


def test_files_with_other_ids_but_the_same_names_are_matched():
    old = [file("a", url="https://h/t/p=%201/one.parquet?sig=1"), file("b", url="https://h/t/two.parquet")]
    new = [file("x", url="https://n/one.parquet?sig=2", size=9), file("y", url="https://n/two.parquet")]
    assert found(old, new) == [
        ("difference", "file.id", "a", "x", "2 files, e.g. one.parquet"),
        ("difference", "file.size", 10, 9, "1 file, e.g. a"),
    ]


def test_names_that_are_not_unique_do_not_match():
    old = [file("a", url="https://h/1/n.parquet"), file("b", url="https://h/2/n.parquet")]
    new = [file("x", url="https://h/n.parquet")]
    assert [item[1] for item in found(old, new)] == ["files", "files"]


VECTOR = {"storageType": "p", "pathOrInlineDv": "dv.bin", "offset": 1, "sizeInBytes": 40, "cardinality": 2}


def test_deletion_vectors_are_compared():
    one, other = file("a", deletion_vector=VECTOR), file("a", deletion_vector={**VECTOR, "cardinality": 3})
    assert found([one], [one]) == []
    assert found([one], [other]) == [
        ("difference", "file.deletionVector.cardinality", 2, 3, "1 file, e.g. a")
    ]


def test_a_deletion_vector_on_one_side_is_a_difference_whichever_it_is():
    one, other = file("a", deletion_vector=VECTOR), file("a")
    assert [item[:2] for item in found([one], [other])] == [("difference", "file.deletionVector")]
    assert [item[:2] for item in found([other], [one])] == [("difference", "file.deletionVector")]


def test_what_else_an_action_says_is_compared_and_may_be_added_to():
    one, other = (
        file("a", others={"dataChange": True}),
        file("a", others={"dataChange": True, "tags": {"k": "v"}}),
    )
    assert [item[:2] for item in found([one], [other])] == [("only in new", "file.tags")]
    assert [item[:2] for item in found([other], [one])] == [("difference", "file.tags")]
