from __future__ import annotations

import ast
import io
import struct
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.bounds import Allowance, Budget
from gateway.services.snapshot.log.footer import Chunk, read_footer
from gateway.services.snapshot.log.pages import Page, walk_pages
from gateway.services.snapshot.log.parquet import open_parquet, read_parquet
from gateway.services.snapshot.log.projection import Wanted
from gateway.services.snapshot.log.thrift import Malformed, Struct, ThriftReader
from gateway.services.snapshot.log.thrift_writer import I64, Field, spell
from tests.cases import each_case
from tests.growth import grows_linearly
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.log.parquet_files import (
    BOOLEAN,
    DICTIONARY,
    DIFFERENCES,
    DOUBLE,
    GZIP,
    INT96,
    LENGTHS,
    LONG,
    PLAIN,
    SHARED,
    SPLIT,
    TEXT,
    UNCOMPRESSED,
    Values,
    column_file,
    described,
    differences,
    file_of,
    group,
    julian,
    leaf,
    parquet,
    plain,
    shared_prefixes,
    texts_file,
    varint,
    with_lengths,
    with_prefixes,
)

_ADD: dict[str, Any] = {
    "path": "a",
    "size": 1,
    "partitionValues": [{"key": "day", "value": "1"}, {"key": "hour", "value": None}],
    "stats": '{"numRecords":1}',
    "deletionVector": {"storageType": "u", "offset": 4},
    "stats_parsed": {
        "minValues": {
            "t": datetime(2024, 1, 1, tzinfo=UTC),
            "n": datetime(2024, 1, 1),  # noqa: DTZ001 (a time without a zone is what it is about)
            "d": date(2024, 1, 1),
            "c": Decimal("1.50"),
            "f": 1.5,
            "b": True,
        }
    },
}
_ROWS = pl.DataFrame(
    {"add": [None, _ADD, {**_ADD, "stats": None, "stats_parsed": None}] * 40, "n": range(120)}
)
_ALL = dict.fromkeys(_ROWS.columns)
# Two million texts of a byte or so take more than the spare room.
_MANY = 4_500_000


def decoded(content: bytes, wanted: Wanted, **limits: int) -> pl.DataFrame:
    budget = Budget(**limits)
    return read_parquet(content, open_parquet(content, budget), wanted, Allowance(budget))


def walk(content: bytes) -> int:
    """Return how many pages there are, without a look at what is in them."""
    footer = read_footer(content)
    leaves = sum(1 for column in footer.columns for _ in column.leaves)
    chunks = [group.chunk(number) for group in footer.row_groups for number in range(leaves)]
    return sum(1 for chunk in chunks for _ in walk_pages(content, footer.start, chunk))


def repeated(value: Any, count: int) -> pl.Series:
    return pl.repeat(value, count, eager=True)


@each_case("compression", ["uncompressed", "snappy", "gzip", "brotli", "lz4", "zstd"])
@each_case(
    "options",
    [{}, {"row_group_size": 7}, {"data_page_size": 64}, {"statistics": "full"}, {"statistics": False}],
    ids=["as is", "row groups", "small pages", "statistics", "no statistics"],
)
def test_what_is_read_is_what_the_library_reads(compression, options):
    content = parquet(_ROWS, compression=compression, **options)

    assert decoded(content, _ALL).equals(_ROWS)


@given(
    st.lists(
        st.none()
        | st.fixed_dictionaries(
            {
                "path": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
                "tags": st.none()
                | st.lists(
                    st.fixed_dictionaries({"key": st.sampled_from("ab"), "value": st.none() | st.just("v")}),
                    max_size=3,
                ),
                "size": st.none() | st.integers(-(2**63), 2**63 - 1),
            }
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["uncompressed", "snappy", "zstd"]),
    st.sampled_from([1, 3, None]),
    st.sampled_from([16, None]),
)
@settings(max_examples=examples(0.6))
def test_any_rows_are_read_as_the_library_reads_them(rows, compression, row_group_size, data_page_size):
    tags = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    members = pl.Struct({"path": pl.String(), "tags": tags, "size": pl.Int64()})
    frame = pl.DataFrame({"add": pl.Series(rows, dtype=members)})
    content = parquet(
        frame, compression=compression, row_group_size=row_group_size, data_page_size=data_page_size
    )

    expected = pl.read_parquet(io.BytesIO(content))
    assert decoded(content, {"add": None}).equals(expected)


def test_of_a_column_that_is_read_only_what_is_wanted_is():
    read = decoded(parquet(_ROWS), {"add": {"path": None, "deletionVector": {"offset": None}}})

    assert read.schema == {
        "add": pl.Struct({"path": pl.String, "deletionVector": pl.Struct({"offset": pl.Int64})})
    }
    assert read["add"].null_count() == 40


def test_whether_a_row_has_a_group_is_told_even_where_nothing_of_it_is_wanted():
    read = decoded(parquet(_ROWS), {"add": {"nothing": None}})

    assert read["add"].null_count() == 40


@pytest.mark.parametrize("wanted", [{}, {"txn": None}])
def test_without_a_column_that_is_wanted_there_is_nothing(wanted):
    assert decoded(parquet(_ROWS), wanted).is_empty()


def test_what_is_not_wanted_takes_no_room():
    extra = repeated(0, 50_000_000).implode()
    content = parquet(
        pl.DataFrame([pl.Series("path", ["a"]), extra.alias("extra")]).to_struct("add").to_frame()
    )

    read = decoded(content, {"add": {"path": None, "size": None}}, spare=0)

    assert read.to_dicts() == [{"add": {"path": "a"}}]
    with pytest.raises(Beyond):
        decoded(content, {"add": None})


@each_case(
    "make",
    [
        lambda: pl.DataFrame([repeated("", _MANY).implode().alias("x")]),
        lambda: pl.DataFrame([repeated(None, _MANY).cast(pl.String).implode().alias("x")]),
        lambda: pl.DataFrame({"x": [f"{n}".ljust(1_000_000) for n in range(70)]}),
        lambda: pl.DataFrame({"x": repeated(None, 18_000_000).cast(pl.String)}).select(
            x=pl.struct("x", y="x")
        ),
    ],
    ids=["entries", "nulls in a list", "long texts", "nulls"],
)
def test_what_a_small_file_stands_for_is_bounded_before_it_is_decoded(make):
    content = parquet(make(), compression="zstd")

    assert len(content) < 100_000
    with pytest.raises(Beyond):
        decoded(content, {"x": None})


_TEXTS = [f"part-{n % 7}-{n:05}.parquet" for n in range(300)]
_NUMBERS = [2**40 + n * n * (-1) ** n for n in range(300)]
_DAY = 24 * 60 * 60 * 10**9


@each_case("is_v2", [False, True], ids=["v1", "v2"])
@each_case("codec", [UNCOMPRESSED, GZIP], ids=["plain", "gzip"])
@each_case("is_optional", [False, True], ids=["required", "optional"])
@each_case("encoding", [PLAIN, DIFFERENCES, LENGTHS, SHARED])
def test_every_kind_of_page_is_read(encoding, is_optional, codec, is_v2):
    values: list[Any] = _NUMBERS if encoding == DIFFERENCES else _TEXTS
    given = values[::2] if is_optional else values
    texts = [str(value).encode() for value in given]
    encoded = {
        PLAIN: lambda: plain(*texts),
        DIFFERENCES: lambda: differences(given),
        LENGTHS: lambda: with_lengths(*texts),
        SHARED: lambda: with_prefixes(*texts),
    }[encoding]()
    content = column_file(
        ["add", "x"],
        Values(
            encoded=encoded,
            count=300,
            kind=LONG if encoding == DIFFERENCES else TEXT,
            encoding=encoding,
            codec=codec,
            is_v2=is_v2,
            is_optional=is_optional,
            pages=2,
        ),
    )
    expected = [value if not is_optional or n % 2 == 0 else None for n, value in enumerate(values)]

    assert decoded(content, {"add": None})["add"].struct.field("x").to_list() == expected * 2


@each_case("is_v2", [False, True], ids=["v1", "v2"])
@each_case("encoding", [DIFFERENCES, LENGTHS, SHARED])
def test_a_page_of_nulls_alone_has_no_values_to_count(encoding, is_v2):
    none = varint(128) + varint(4) + b"\0\0"
    values = Values(
        encoded=none * 2 if encoding == SHARED else none,
        count=5,
        kind=LONG if encoding == DIFFERENCES else TEXT,
        encoding=encoding,
        is_v2=is_v2,
        is_optional=True,
        levels=b"\x0a\0",
    )

    assert decoded(column_file(["x"], values), {"x": None})["x"].null_count() == 5


def test_numbers_that_are_split_into_their_bytes_are_read():
    numbers = [n / 3 for n in range(100)]
    packed = b"".join(struct.pack("<d", number) for number in numbers)
    split = b"".join(packed[byte::8] for byte in range(8))
    values = Values(encoded=split, count=100, kind=DOUBLE, encoding=SPLIT)

    assert decoded(column_file(["x"], values), {"x": None})["x"].to_list() == numbers


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "not told"])
def test_values_of_a_dictionary_are_read_whether_or_not_it_is_told_where_that_is(is_told):
    words = plain(b"even", b"odd")
    dictionary = spell({1: 2, 2: len(words), 3: len(words), 7: spell({1: 2, 2: PLAIN})}) + words
    # Numbers of a bit, eight of them packed.
    page = Values(encoded=b"\x01\x03\xaa", count=8, encoding=DICTIONARY).page
    at = I64(4 + len(dictionary) if is_told else 4)
    about: dict[int, Field | None] = {1: TEXT, 2: [DICTIONARY], 3: ["x"], 4: 0, 5: I64(8)}
    about |= {6: I64(99), 7: I64(99), 9: at, 11: I64(4) if is_told else None}
    chunk = spell({2: I64(4), 3: spell(about)})
    row_group = spell({1: [chunk], 2: I64(99), 3: I64(8)})
    elements = [group("schema", 1), spell({1: TEXT, 3: 0, 4: "x", 6: 0})]
    content = file_of({1: 1, 2: elements, 3: I64(8), 4: [row_group]}, dictionary + page)

    assert decoded(content, {"x": None})["x"].to_list() == ["even", "odd"] * 4


def test_times_in_an_old_encoding_are_read_and_those_beyond_it_are_all_the_same():
    days = [-106_751, -106_752, -719_162, 0, 19_724, 106_751, 106_752, 2_932_896]
    values = Values(encoded=b"".join(julian(day) for day in days), count=len(days), kind=INT96)
    read = decoded(column_file(["t"], values), {"t": None})["t"]

    assert read.dtype == pl.Datetime("ns")
    reached = [day * _DAY if abs(day) < 106_752 else 2**63 - 1 for day in days]
    assert read.to_physical().to_list() == reached


_MUCH = 2**40
# Of blocks that are longer than any page, and take no more than a byte.
_ONE_BLOCK = varint(_MUCH) + varint(1) + varint(_MUCH) + b"\0" + b"\0\0"
_FEW = differences([0] * 10)


@each_case("codec", [UNCOMPRESSED, GZIP], ids=["plain", "gzip"])
@each_case(
    ("encoding", "encoded", "reason"),
    [
        (DIFFERENCES, _ONE_BLOCK, "more values than it is told"),
        (DIFFERENCES, differences([0] * 11), "more values than it is told"),
        (DIFFERENCES, varint(_MUCH) + varint(1) + varint(10) + b"\0" + b"\0\0", "blocks that are none"),
        (DIFFERENCES, varint(128) + varint(0) + varint(10) + b"\0" + b"\0\0", "blocks that are none"),
        (DIFFERENCES, varint(32) + varint(1) + varint(10) + b"\0" + b"\0\0", "blocks that are none"),
        (DIFFERENCES, varint(128) + varint(8) + varint(10) + b"\0" + b"\0\0", "blocks that are none"),
        (DIFFERENCES, varint(128) + varint(4) + varint(10) + b"\0" + b"\0\0", "cut short"),
        (DIFFERENCES, varint(128) + varint(4) + varint(10) + b"\0" + b"\0\x41\0\0\0", "wider than any"),
        (DIFFERENCES, varint(128) + varint(4) + varint(10) + b"\0" + b"\0\x08\0\0\0", "cut short"),
        (LENGTHS, _ONE_BLOCK, "more values than it is told"),
        (SHARED, _ONE_BLOCK, "more values than it is told"),
        (SHARED, _FEW + _ONE_BLOCK, "more values than it is told"),
        (SHARED, _FEW + differences([0] * 9), "more texts than ends of texts"),
        (SHARED, _FEW + differences([_MUCH] * 10), "longer than what it is made of"),
        (SHARED, _FEW + differences([-1] * 10), "longer than what it is made of"),
        (SHARED, _FEW + differences([9] * 10) + b"x" * 89, "longer than what they are made of"),
        (SHARED, differences([0] * 9 + [-1]) + _FEW, "longer than what it is made of"),
        (SHARED, differences([0] * 9 + [2**62]) + _FEW, "longer than what it is made of"),
        (SHARED, differences([1] * 10) + _FEW, "more with the text before than that has"),
        (SHARED, differences([0, 2] * 5) + differences([1] * 10) + b"x" * 10, "more with the text before"),
    ],
)
def test_counts_and_lengths_in_a_page_are_held_against_what_it_has(encoding, encoded, reason, codec):
    kind = LONG if encoding == DIFFERENCES else TEXT
    values = Values(encoded=encoded, count=10, kind=kind, encoding=encoding, codec=codec)

    with pytest.raises(Malformed, match=reason):
        decoded(column_file(["x"], values), {"x": None})


def test_a_block_that_is_long_is_no_more_work_than_its_bytes():
    def read(size: int) -> None:
        # As wide as they may be.
        block = varint(size) + varint(1) + varint(size) + b"\0" + b"\0" + bytes([64]) + b"\0" * 8 * size
        values = Values(encoded=block + block, count=size, encoding=SHARED, pages=20)
        assert decoded(column_file(["x"], values), {"x": None})["x"].to_list()[-1] == ""

    # The larger has as many as a block may have.
    assert grows_linearly(read, 65_536)


def nested(depth: int, count: int) -> bytes:
    """Return a row of lists in lists, in each of which is the next, and in the last of which are nulls."""
    levels = 2 * depth + 1
    elements = [spell({4: "schema", 5: 1})]
    for _ in range(depth):
        elements += [spell({3: 1, 4: "l", 5: 1, 6: 3}), spell({3: 2, 4: "list", 5: 1})]
    repetitions = b"\x02\0" + varint((count - 1) << 1) + b"\1"
    definitions = varint(count << 1) + bytes([levels - 1])
    parts = [len(part).to_bytes(4, "little") + part for part in (repetitions, definitions)]
    page = Values(encoded=b"".join(parts), count=count).page
    chunk = spell({1: BOOLEAN, 2: [0], 3: ["l"], 4: 0, 5: I64(count), 6: I64(9), 7: I64(9), 9: I64(4)})
    row_group = spell({1: [spell({2: I64(4), 3: chunk})], 2: I64(9), 3: I64(1)})
    leaves = [*elements, spell({1: BOOLEAN, 3: 1, 4: "element"})]
    return file_of({1: 1, 2: leaves, 3: I64(1), 4: [row_group]}, page)


def test_values_in_lists_count_at_each_level():
    assert decoded(nested(3, 1000), {"l": None}).height == 1
    assert decoded(nested(20, 100_000), {"l": None}).height == 1
    with pytest.raises(Beyond):
        decoded(nested(20, 3_000_000), {"l": None})


def test_values_in_many_groups_count_for_each_of_them():
    def content(depth: int, count: int) -> bytes:
        values = Values(encoded=b"", count=count, is_optional=True, levels=varint(count << 1) + b"\0")
        return column_file(["g"] * depth, values)

    assert decoded(content(8, 5_000_000), {"g": None}).height == 5_000_000
    with pytest.raises(Beyond):
        decoded(content(60, 5_000_000), {"g": None})


def test_bytes_that_are_in_no_page_and_those_of_a_page_that_comes_again_stand_for_nothing():
    values = Values(encoded=plain(b"x" * 4_000_000), count=1, codec=GZIP, pages=25)

    assert len(column_file(["x"], values)) < 200_000
    for padding in (0, 10_000_000):
        with pytest.raises(Beyond, match="256 times the bytes that are read of it"):
            decoded(column_file(["x"], values, padding), {"x": None})


def test_there_is_an_end_to_what_a_checkpoint_may_come_to_whatever_it_is_read_of():
    content = column_file(["x"], Values(encoded=plain(b"x" * 4_000_000), count=1))

    assert decoded(content, {"x": None}, decoded=5_000_000).height == 1
    with pytest.raises(Beyond, match="larger than 17179869184 bytes, decoded"):
        decoded(content, {"x": None}, decoded=3_000_000)


def test_texts_that_share_what_is_before_them_are_read():
    content = texts_file(["add", "path"], 1000, shared_prefixes(b"abc" * 100, 1000), SHARED)

    assert decoded(content, {"add": None})["add"].to_list() == [{"path": "abc" * 100}] * 1000


def test_texts_that_share_what_is_before_them_are_measured_as_what_they_stand_for():
    content = texts_file(["add", "path"], 1000, shared_prefixes(b"x" * 200_000, 1000), SHARED)

    with pytest.raises(Beyond):
        decoded(content, {"add": None})


def same_page(name: str, columns: int, groups: int) -> bytes:
    """Return a file in which all columns, which are in one group, are the same page."""
    page = Values(encoded=plain(b"a"), count=1).page
    about = spell({1: 6, 2: [0], 3: ["x"], 4: 0, 5: I64(1), 6: I64(1), 7: I64(1), 9: I64(4)})
    row_group = spell({1: [spell({2: I64(4), 3: about})] * columns, 2: I64(9), 3: I64(1)})
    leaves = [spell({1: 6, 3: 0, 4: f"c{n}"}) for n in range(columns)]
    elements = [spell({4: "schema", 5: 1}), spell({3: 0, 4: name, 5: columns}), *leaves]
    return file_of({1: 1, 2: elements, 3: I64(groups), 4: [row_group] * groups}, page)


def test_a_page_costs_something_whatever_is_in_it():
    content = same_page("n", columns=1000, groups=1)

    assert decoded(content, {"n": None}).height == 1
    with pytest.raises(Beyond):
        decoded(content, {"n": None}, spare=16_000_000)


def empty_pages(count: int) -> bytes:
    """Return a file of one text, whose page comes after so many that have no value."""
    empty, last = Values(encoded=b"", count=0).page, Values(encoded=plain(b"a"), count=1).page
    about = spell({1: TEXT, 2: [0], 3: ["x"], 4: 0, 5: I64(1), 6: I64(9), 7: I64(9), 9: I64(4)})
    row_group = spell({1: [spell({2: I64(4), 3: about})], 2: I64(9), 3: I64(1)})
    elements = [group("schema", 1), spell({1: TEXT, 3: 0, 4: "x", 6: 0})]
    return file_of({1: 1, 2: elements, 3: I64(1), 4: [row_group]}, empty * count + last)


def test_pages_that_are_empty_are_not_paid_for_by_their_headers():
    assert decoded(empty_pages(1000), {"x": None})["x"].to_list() == ["a"]
    with pytest.raises(Beyond, match="256 times the bytes that are read of it"):
        decoded(empty_pages(20_000), {"x": None})


def test_pages_are_walked_no_further_than_there_is_an_end_to_what_is_read(monkeypatch):
    read: list[int] = []

    def count_pages(content: bytes, end: int, chunk: Chunk) -> Iterator[Page]:
        for page in walk_pages(content, end, chunk):
            read.append(page.at)
            yield page

    monkeypatch.setattr("gateway.services.snapshot.log.parquet.walk_pages", count_pages)

    with pytest.raises(Beyond, match="larger than 17179869184 bytes, decoded"):
        decoded(empty_pages(500_000), {"x": None}, decoded=10_000_000)
    assert 0 < len(read) < 5000


def test_small_pages_are_read():
    paths = pl.DataFrame({"x": [f"part-{n:05}-{n * 7919 % 99_991:08x}.parquet" for n in range(100_000)]})
    content = parquet(paths, data_page_size=1024, compression="zstd")

    assert walk(content) > 2000
    assert decoded(content, {"x": None}, spare=0).equals(paths)


@pytest.mark.parametrize("depth", [64, 1300, 20_000])
def test_columns_that_are_nested_too_deeply_are_refused_before_anything_recurses(depth):
    content = described(group("schema", 1), group("add", 1), *([group("g", 1)] * depth), leaf("x"))

    with pytest.raises(Beyond, match="columns that are nested more than 64 deep"):
        decoded(content, {"add": None})


def test_a_name_that_is_told_again_for_each_column_below_it_is_bounded():
    names = [group("n" * 4096, 1000), *[leaf(f"c{n}") for n in range(1000)]]

    with pytest.raises(Beyond, match="a name of more than 4096 letters"):
        decoded(described(group("schema", 1), group("n" * 4097, 1), leaf("x")), {"x": None})
    assert decoded(described(group("schema", 1), *names), {"x": None}).is_empty()


def test_the_names_of_columns_count_in_each_row_group():
    short, long = "n", "n" * 4096

    assert decoded(same_page(short, 500, groups=2), {short: None}, spare=18_000_000).height == 2
    assert decoded(same_page(long, 500, groups=1), {long: None}, spare=18_000_000).height == 1
    with pytest.raises(Beyond):
        decoded(same_page(long, 500, groups=2), {long: None}, spare=18_000_000)


_MOST = b"\xfc" + varint(2**31 - 1)


@each_case(
    "content",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1PAR1",
        b"PAR1" + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        file_of(b"\x15\x02\x19" + _MOST),
        file_of(b"\x15\x02\x19\x1c" + group("schema", 0) + b"\x16\0\x19" + _MOST),
        file_of(b"\x15\x02\xec" + b"\x1c" * 3_000_000),
        file_of(b"\x15\x02\xe9" + b"\x19" * 200_000),
        described(),
        described(group("schema", 2**31 - 1), leaf("x")),
        described(group("schema", -5), leaf("x")),
        described(group("schema", 0), leaf("x")),
        described(group("schema", 1), leaf("x"), row_groups=[spell({1: [], 2: I64(0), 3: I64(1)})]),
        described(group("schema", 0), row_groups=[spell({1: [], 2: I64(0), 3: I64(-1)})]),
    ],
    ids=[
        "nothing",
        "a beginning",
        "no description",
        "a length beyond the file",
        "columns beyond the file",
        "rows beyond the file",
        "structs without an end",
        "lists without an end",
        "no columns",
        "fewer columns than told",
        "fewer columns than none",
        "more columns than told",
        "rows without columns",
        "fewer rows than none",
    ],
)
def test_what_is_no_file_or_more_than_any_is_malformed(content):
    with pytest.raises(Malformed):
        decoded(content, {"x": None})


# Some take a second to write, which is not to be part of every collection.
@each_case(
    ("write", "limit", "structs"),
    [
        (lambda: described(group("schema", 100_001), *[leaf("x")] * 100_000), "100000 columns", 1),
        (lambda: file_of(b"\x29\xfc" + varint(8_000_000) + b"\0" * 8_000_000), "100000 columns", 1),
        (lambda: described(group("schema", 0), row_groups=[spell({})] * 20_001), "20000 row groups", 2),
        (
            lambda: described(group("schema", 0), row_groups=[spell({1: [spell({})] * 100_001})]),
            "100000 columns",
            3,
        ),
        (
            lambda: described(group("schema", 0), row_groups=[spell({1: [spell({})] * 90_000})] * 23),
            "more values",
            1_100_000,
        ),
        (lambda: file_of(b"\x15\x02\x29\x03" + b"\0" * 68_000_000), "67108864 bytes", 0),
    ],
    ids=["columns", "columns that are nothing", "row groups", "columns of rows", "in all", "bytes"],
)
def test_a_description_beyond_a_limit_is_told_the_limit_before_it_is_held(write, limit, structs, monkeypatch):
    content = write()
    original, read = ThriftReader.read_struct, 0

    def read_struct(*args: Any) -> Struct:
        nonlocal read
        read += 1
        return original(*args)

    monkeypatch.setattr(ThriftReader, "read_struct", read_struct)
    with pytest.raises(Beyond, match=limit):
        decoded(content, {"x": None})
    assert read <= structs


@pytest.mark.parametrize(
    "content",
    [parquet(_ROWS)[:-4] + b"PARE", described(group("schema", 0), encryption=spell({1: spell({})}))],
    ids=["whole", "signed"],
)
def test_an_encrypted_file_is_told_to_be_one(content):
    with pytest.raises(Malformed, match="it is encrypted"):
        decoded(content, {"x": None})


def chunk_with(**fields: Any) -> bytes:
    about: dict[int, Field | None] = {
        1: 6,
        2: [0],
        3: ["x"],
        4: 0,
        5: I64(3),
        6: I64(9),
        7: I64(9),
        9: I64(4),
        11: None,
    }
    chunk: dict[int, Field | None] = {
        1: fields.get("file"),
        2: I64(4),
        3: spell({**about, **fields.get("about", {})}),
    }
    row_group = spell({1: [spell({**chunk, 8: fields.get("encryption")})], 2: I64(9), 3: I64(3)})
    return file_of(
        {1: 1, 2: [group("schema", 1), leaf("x")], 3: I64(3), 4: [row_group]}, fields.get("body", b"")
    )


_PAGE: dict[int, Field | None] = {1: 0, 2: 0, 3: 0, 5: spell({1: 3, 2: 0, 3: 3, 4: 3})}


@each_case(
    ("content", "reason"),
    [
        (chunk_with(encryption=spell({})), "encrypted"),
        (chunk_with(file="/etc/passwd"), "another file"),
        (chunk_with(about={5: I64(2)}), "fewer values than rows"),
        (chunk_with(about={9: I64(10**9)}), "cut short"),
        (chunk_with(about={9: I64(-1)}), "negative"),
        (chunk_with(body=spell({**_PAGE, 1: 1})), "no known kind"),
        (chunk_with(body=spell({**_PAGE, 3: 100})), "cut short"),
        (chunk_with(body=spell({**_PAGE, 3: -100})), "negative"),
        (chunk_with(body=spell({**_PAGE, 2: 2**31})), "larger than any"),
        (chunk_with(body=spell({**_PAGE, 5: spell({1: -3, 2: 0, 3: 3, 4: 3})})), "negative"),
        (chunk_with(body=spell({**_PAGE, 5: spell({1: 2, 2: 0, 3: 3, 4: 3})})), "cut short"),
        (chunk_with(body=spell({1: 2, 2: 5, 3: 0, 7: spell({1: 6, 2: 0})})), "more values than bytes"),
        (
            chunk_with(
                body=spell({1: 3, 2: 0, 3: 0, 8: spell({1: 3, 2: 0, 3: 3, 4: 0, 5: 2**30, 6: 0, 7: True})})
            ),
            "shorter than its levels",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pages_that_are_not_what_they_are_told_to_be_are_malformed(content, reason):
    with pytest.raises(Malformed, match=reason):
        decoded(content, {"x": None})


def test_rows_in_which_many_columns_are_the_same_pages_are_bounded():
    page = parquet(pl.DataFrame({"x": ["y" * 100_000]}), compression="uncompressed")
    about = spell({1: 6, 2: [0], 3: ["x"], 4: 0, 5: I64(1), 6: I64(1), 7: I64(1), 9: I64(4)})
    row_group = spell({1: [spell({2: I64(4), 3: about})] * 2000, 2: I64(9), 3: I64(1)})
    content = file_of(
        {1: 1, 2: [group("schema", 2000), *[leaf("x")] * 2000], 3: I64(1), 4: [row_group]}, page[4:]
    )

    with pytest.raises(Beyond):
        decoded(content, {"x": None})


@given(st.binary(max_size=200))
def test_any_bytes_are_a_file_or_malformed(content):
    for each in (content, file_of(content), file_of(content, b"x" * 50)):
        try:
            walk(each)
        except (Malformed, Beyond):
            continue


@pytest.mark.slow
def test_a_file_with_any_bytes_changed_is_read_or_an_error_and_never_the_end_of_the_process():
    ran = subprocess.run(
        [sys.executable, "-m", "tests.unit.services.snapshot.log.changed_bytes", "0", "3000"],
        capture_output=True,
        text=True,
        check=False,
    )
    *numbers, outcomes = ran.stdout.splitlines() or [""]

    assert ran.returncode == 0, f"ended by {[*numbers, outcomes][-1]}: {ran.stderr[-2000:]}"
    assert len(numbers) == 3000
    assert {"read", "Malformed"} <= set(ast.literal_eval(outcomes))


_WHOLE = parquet(_ROWS.head(6), compression="snappy", row_group_size=3)


def test_a_file_that_is_whole_has_a_page_for_each_column_of_its_rows():
    assert walk(_WHOLE) >= 2 * 12
