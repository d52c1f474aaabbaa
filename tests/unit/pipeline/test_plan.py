from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidArgument
from pipeline.plan import read_plan
from tests.cases import each_case


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    text: str
    number: int
    is_so: bool
    share: float = 0.5
    colour: Colour = Colour.RED
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    values: Mapping[str, str | None] = field(default_factory=dict)
    anything: Mapping[str, Any] = field(default_factory=dict)


LEAST: dict[str, Any] = {"text": "a", "number": 1, "is_so": True}


def test_fields_with_defaults_may_be_left_out():
    assert read_plan(Whole, LEAST) == Whole(text="a", number=1, is_so=True)


def test_everything_is_read_into_its_type():
    given_values = LEAST | {
        "share": 1,
        "colour": "blue",
        "part": {"name": "p", "size": 2},
        "parts": [{"name": "q", "size": 3}],
        "values": {"x": None, "y": "z"},
        "anything": {"deep": [1, {"er": None}]},
    }
    read = read_plan(Whole, given_values)
    assert read.part == Part(name="p", size=2)
    assert read.parts == (Part(name="q", size=3),)
    assert (read.share, read.colour) == (1.0, Colour.BLUE)
    assert read.values == {"x": None, "y": "z"}
    assert read.anything == {"deep": [1, {"er": None}]}


@each_case(
    ("changes", "message"),
    [
        ({"text": None}, "plan.text is not a string"),
        ({"number": "1"}, "plan.number is not a whole number"),
        ({"number": True}, "plan.number is not a whole number"),
        ({"number": 1.0}, "plan.number is not a whole number"),
        ({"is_so": 1}, "plan.is_so is not true or false"),
        ({"share": "half"}, "plan.share is not a number"),
        ({"colour": "green"}, "plan.colour is none of red, blue"),
        ({"colour": []}, "plan.colour is none of red, blue"),
        ({"part": []}, "plan.part is not an object"),
        ({"part": {"name": "p"}}, "plan.part.size is missing"),
        ({"parts": {}}, "plan.parts is not a list"),
        (
            {"parts": [{"name": "p", "size": 1}, {"name": 2, "size": 1}]},
            r"plan.parts\[1\].name is not a string",
        ),
        ({"values": {"x": 1}}, "plan.values.x is not a string"),
        ({"other": 1}, "plan.other is not known"),
    ],
)
def test_a_field_that_is_wrong_is_named(changes, message):
    with pytest.raises(InvalidArgument, match=f"^{message}$"):
        read_plan(Whole, LEAST | changes)


@pytest.mark.parametrize("missing", LEAST)
def test_a_field_that_is_missing_is_named(missing):
    with pytest.raises(InvalidArgument, match=f"^request.{missing} is missing$"):
        read_plan(Whole, {name: value for name, value in LEAST.items() if name != missing}, name="request")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values=JSON | st.dictionaries(st.sampled_from([*LEAST, "part", "parts", "values", "colour"]), JSON))
def test_whatever_is_given_is_read_as_it_is_or_refused(values):
    try:
        read = read_plan(Whole, values)
    except InvalidArgument:
        return
    written = asdict(read) | {"parts": [asdict(part) for part in read.parts]}
    assert {name: written[name] for name in values} == values
