from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.thrift import Listed, Malformed, Shape, ThriftReader
from gateway.services.snapshot.log.thrift_writer import I8, I64, Field, Spelled, spell
from tests.cases import each_case

_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_SHAPE: Shape = {1: None, 2: {1: None}, 3: Listed(of={}, most=1000, what="things"), 32_767: None}


def read(content: bytes, shape: Shape = _SHAPE, values: int = 1000):
    return ThriftReader(content, 0, len(content), values=values).read_struct(shape)


@given(_INTEGERS, st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 15), st.booleans())
def test_what_is_written_is_read(number, text, step, truth):
    fields = {1: I64(number), 1 + step: text, 17: truth, 18: I8(7), 19: [spell({3: 5})] * step}
    listed = Listed(of={3: None}, most=15, what="things")
    found = read(spell(fields), {1: None, 1 + step: None, 17: None, 18: None, 19: listed})

    assert found.integer(1) == number
    assert found.text(1 + step) == text
    assert found.integer(17) == truth
    assert found.integer(18) == 7
    assert [each.integer(3) for each in found.structs(19)] == [5] * step


def test_fields_that_are_not_asked_for_are_skipped_whatever_they_are():
    skipped: dict[int, Field | None] = {
        2: "text",
        3: [1, 2, 3],
        4: spell({1: True, 2: spell({5: ["a"] * 20})}),
        5: I8(3),
        6: False,
    }
    # A double, a map of truths by texts, and an empty one.
    odd = b"\x17" + b"\0" * 8 + b"\x1b\x01\x81\x01k\x01" + b"\x1b\x00"
    content = spell(skipped)[:-1] + odd + spell({1: 9})

    assert read(Spelled(content + b"\0"), {7 + 3: None}).find(10) == 9


@each_case(
    "content",
    [
        b"",
        b"\x15",
        b"\x15\x80",
        b"\x15" + b"\xff" * 11 + b"\0",
        b"\x18\x7fabc\0",
        b"\x48\x7fabc\0",
        b"\x39\xfc\xff\xff\xff\xff\x07",
        b"\x49\xfc\xff\xff\xff\xff\x07",
        b"\x4b\xff\xff\xff\xff\x07\x88",
        b"\x39\x25ab\0",
        b"\x1d\0",
        b"\x4d\0",
        b"\x10\0",
        b"\x05\x82\x80\x08\0\0",
        b"\x05\x01\0\0",
    ],
    ids=[
        "nothing",
        "cut short",
        "cut short in a number",
        "a number without an end",
        "a text cut short",
        "a skipped text cut short",
        "a list of more than there is",
        "a skipped list of more than there is",
        "a map of more than there is",
        "a list of numbers",
        "a type that is none",
        "a skipped type that is none",
        "a field without a type",
        "a field beyond the last",
        "a field before the first",
    ],
)
def test_what_is_not_thrift_is_malformed(content):
    with pytest.raises(Malformed):
        read(content)


@each_case("step", [b"\x1c", b"\x19\x1c", b"\x4c", b"\x49\x19"], ids=str)
def test_depth_is_bounded_whether_it_is_read_or_skipped(step):
    shape: dict[int, Shape | Listed | None] = {}
    shape[1] = Listed(of=shape, most=15, what="things") if step[0] & 15 == 9 else shape
    with pytest.raises(Malformed, match="nested"):
        read(step * 100_000, shape, values=1_000_000)


@pytest.mark.parametrize("number", [3, 4], ids=["read", "skipped"])
def test_so_many_values_are_read_and_no_more(number):
    content = spell({number: [spell({})] * 100})
    read(content, values=101)

    with pytest.raises(Beyond, match="more values"):
        read(content, values=100)


def test_a_list_is_as_long_as_it_may_be_before_any_of_it_is_read():
    read(spell({3: [spell({})] * 1000}), values=1001)

    with pytest.raises(Beyond, match="has more than 1000 things"):
        read(spell({3: [spell({})] * 1001}), values=1)


@pytest.mark.parametrize("content", [spell({3: 1}), spell({3: spell({})}), spell({2: [spell({})]})])
def test_a_list_where_there_is_none_and_none_where_there_is_one_are_malformed(content):
    with pytest.raises(Malformed):
        read(content)


@each_case(
    "ask",
    [
        lambda found: found.integer(2),
        lambda found: found.integer(9),
        lambda found: found.size(1),
        lambda found: found.text(1),
        lambda found: found.text(4),
        lambda found: found.struct(1),
        lambda found: found.structs(1),
        lambda found: found.structs(9),
    ],
)
def test_a_field_of_another_type_or_none_is_malformed(ask):
    content = spell({1: -1, 2: "x"})[:-1] + b"\x28\x01\xff\0"
    found = read(content, dict.fromkeys((1, 2, 4)))

    with pytest.raises(Malformed):
        ask(found)


@given(st.binary(max_size=300))
def test_any_bytes_are_thrift_or_malformed(content):
    try:
        read(content)
    except (Malformed, Beyond):
        return
    assert content
