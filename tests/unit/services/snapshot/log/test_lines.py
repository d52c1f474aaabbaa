from __future__ import annotations

import io
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.exceptions import PolarsError

from gateway.services.snapshot.log.lines import LineDecoder, split_lines
from gateway.services.snapshot.log.schema import ADD, METADATA, PROTOCOL
from tests.cases import each_case
from tests.hypothesis_profiles import examples

_MEMBERS = {"add": pl.Struct(ADD), "protocol": pl.Struct(PROTOCOL), "metaData": pl.Struct(METADATA)}
_DECODER = LineDecoder(_MEMBERS)
_SMALL = LineDecoder({"a": pl.Struct({"n": pl.Int64(), "k": pl.Int32(), "t": pl.String()})})

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_LONG = st.none() | st.integers(-(2**63), 2**63 - 1)
_INT = st.none() | st.integers(-(2**31), 2**31 - 1)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_TEXTS = st.none() | st.dictionaries(_TEXT, st.none() | _TEXT, max_size=3)
_VECTOR = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "storageType": st.none() | _TEXT,
        "pathOrInlineDv": _TEXT,
        "offset": _INT,
        "sizeInBytes": _INT,
        "cardinality": _LONG,
        "unheardOf": _JSON,
    },
)
_ADD = st.fixed_dictionaries(
    {},
    optional={
        "path": st.none() | _TEXT,
        "partitionValues": _TEXTS,
        "size": _LONG,
        "modificationTime": _LONG,
        "dataChange": st.none() | st.booleans(),
        "stats": st.none() | _TEXT,
        "tags": _TEXTS,
        "deletionVector": _VECTOR,
        "unheardOf": _JSON,
    },
)
_PROTOCOL = st.fixed_dictionaries(
    {},
    optional={
        "minReaderVersion": _INT,
        "readerFeatures": st.none() | st.lists(st.none() | _TEXT, max_size=3),
    },
)
_METADATA = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | _TEXT,
        "format": st.none() | st.fixed_dictionaries({}, optional={"provider": _TEXT, "options": _TEXTS}),
        "partitionColumns": st.none() | st.lists(_TEXT, max_size=3),
        "configuration": _TEXTS,
        "createdTime": _LONG,
    },
)
_LINES = st.fixed_dictionaries(
    {},
    optional={
        "add": st.none() | _ADD,
        "protocol": st.none() | _PROTOCOL,
        "metaData": st.none() | _METADATA,
        "commitInfo": _JSON,
    },
)


def to_lines(*objects: object, ensure_ascii: bool = True) -> list[bytes]:
    return [json.dumps(each, ensure_ascii=ensure_ascii).encode() for each in objects]


@settings(max_examples=examples(2))
@given(st.lists(_LINES, min_size=1, max_size=5), st.booleans())
def test_lines_say_what_another_reader_reads_in_them(objects, ensure_ascii):
    lines = to_lines(*objects, ensure_ascii=ensure_ascii)

    expected = pl.read_ndjson(io.BytesIO(b"\n".join(lines)), schema=pl.Schema(_MEMBERS))

    found = _DECODER.decode(lines)
    for name, dtype in _MEMBERS.items():
        ours, theirs = found[name].drop_nulls(), expected[name].drop_nulls()
        assert found[name].is_null().to_list() == expected[name].is_null().to_list()
        if not theirs.is_empty():
            assert ours.dtype == dtype
            # A struct that is not there and one with nothing in it are the same to us.
            assert flat(ours) == flat(theirs)


def flat(rows: pl.Series) -> list[object]:
    frame = rows.struct.unnest()
    for column in frame.get_columns():
        if isinstance(column.dtype, pl.Struct):
            frame = frame.unnest(column.name, separator=".")
    return list(frame.rows())


@settings(deadline=None)
@given(st.integers(-(2**70), 2**70), st.integers(-(2**40), 2**40))
def test_an_integer_is_exact_or_refused(long, short):
    lines = to_lines({"a": {"n": long, "k": short}})

    if -(2**63) <= long < 2**63 and -(2**31) <= short < 2**31:
        assert _SMALL.decode(lines)["a"].to_list() == [{"n": long, "k": short, "t": None}]
    else:
        with pytest.raises(PolarsError):
            _SMALL.decode(lines)


@each_case(
    "line",
    [
        b'{"a":{"n":1.5}}',
        b'{"a":{"n":1e30}}',
        b'{"a":{"n":1e999}}',
        b'{"a":{"n":true}}',
        b'{"a":{"n":"x"}}',
        b'{"a":{"n":[1]}}',
        b'{"a":{"n":NaN}}',
        b'{"a":{"t":{"x":1}}}',
        b'{"a":{"t":"\x01"}}',
        b'{"a":{"t":"\xff"}}',
        b'{"b":"\xff"}',
        b'{"a":[]}',
        b'{"a":1}',
        b'{"a":{}} {"a":{}}',
        b'{"a":{}},{"a":{}}',
        b"[]",
        b"null",
        b"1",
        b'{"a":{',
        b'\xef\xbb\xbf{"a":{}}',
    ],
)
def test_a_line_that_is_not_what_it_should_be_is_refused(line):
    with pytest.raises(PolarsError):
        _SMALL.decode([b'{"a":{"n":1}}', line, b'{"a":{"n":2}}'])


def test_an_object_over_two_lines_is_refused():
    with pytest.raises(PolarsError):
        _SMALL.decode([b'{"a":{"n":1', b'"k":2}}'])


def test_of_two_members_by_one_name_the_first_counts():
    assert _SMALL.decode([b'{"a":{"n":1,"n":2},"a":{}}'])["a"].to_list() == [{"n": 1, "k": None, "t": None}]


def test_a_whole_number_may_be_spelled_otherwise():
    assert _SMALL.decode([b'{"a":{"n":2.0,"k":"3"}}'])["a"].to_list() == [{"n": 2, "k": 3, "t": None}]


def test_any_number_of_lines_is_read_in_order():
    found = _SMALL.decode(to_lines(*({"a": {"n": n}} for n in range(10_000))))

    assert found["a"].struct.field("n").to_list() == list(range(10_000))


def test_no_lines_have_columns_too():
    assert dict(_DECODER.decode([]).schema) == _MEMBERS


def test_lines_without_anything_in_them_do_not_count():
    assert split_lines(b"\n a\r\n\r\n \t\nb\n\n") == [b" a\r", b"b"]
