from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.commands.comparison.rows import (
    Column,
    RowDigest,
    UnreadableFile,
    columns_of,
    digest_file,
    total,
)
from tests.cases import each_case
from tests.hypothesis_profiles import examples


def columns(partitions: list[str] | None = None, **types: object) -> tuple[Column, ...]:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    return columns_of({"schemaString": schema, "partitionColumns": partitions or []})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


def digest(
    folder: Path, frame: pl.DataFrame, wanted: tuple[Column, ...], **partition: str | None
) -> RowDigest:
    frame.write_parquet(folder / "a.parquet")
    return digest_file(folder / "a.parquet", wanted, partition)


ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), max_size=6)


@settings(max_examples=examples(0.4))
@given(ROWS, ROWS)
def test_digests_agree_if_and_only_if_the_rows_do_in_any_order(tmp_path_factory, one, other):
    folder = tmp_path_factory.getbasetemp()
    wanted = columns(x="long", y="string")

    def of(rows):
        return digest(folder, pl.DataFrame(rows, {"x": pl.Int64, "y": pl.String}, orient="row"), wanted)

    assert (of(one) == of(other)) == (sorted(map(repr, one)) == sorted(map(repr, other)))


def test_rows_may_be_spread_over_files(folder):
    frame = pl.DataFrame({"x": [1, 2, 3]})
    wanted = columns(x="long")
    parts = [digest(folder, frame[:1], wanted), digest(folder, frame[1:], wanted)]
    assert total(parts) == digest(folder, frame, wanted)
    assert total(parts).rows == 3


def test_the_width_of_a_number_and_the_order_of_columns_do_not_matter(folder):
    narrow = pl.DataFrame({"x": pl.Series([1, 2], dtype=pl.Int16), "y": ["a", "b"]})
    wide = pl.DataFrame({"y": ["b", "a"], "x": pl.Series([2, 1], dtype=pl.Int64)})
    wanted = columns(x="short", y="string")
    assert digest(folder, narrow, wanted) == digest(folder, wide, wanted)


def test_the_unit_and_mark_of_an_instant_do_not_matter(folder):
    plain = pl.DataFrame({"t": pl.Series([datetime(2020, 1, 1)], dtype=pl.Datetime("ns"))})  # noqa: DTZ001 -- the case
    marked = plain.select(pl.col("t").cast(pl.Datetime("ms")).dt.replace_time_zone("UTC"))
    wanted = columns(t="timestamp")
    assert digest(folder, plain, wanted) == digest(folder, marked, wanted)


def test_a_column_that_a_file_lacks_is_null(folder):
    wanted = columns(x="long", added="string")
    before = pl.DataFrame({"x": [1]})
    after = pl.DataFrame({"x": [1], "added": pl.Series([None], dtype=pl.String)})
    assert digest(folder, before, wanted) == digest(folder, after, wanted)


def test_a_column_that_the_table_lacks_is_ignored(folder):
    wanted = columns(x="long")
    assert digest(folder, pl.DataFrame({"x": [1], "z": [2]}), wanted) == digest(
        folder, pl.DataFrame({"x": [1]}), wanted
    )


def test_partition_values_belong_to_the_rows(folder):
    frame, wanted = pl.DataFrame({"x": [1]}), columns(["p"], x="long", p="date")
    assert digest(folder, frame, wanted, p="2020-01-01") != digest(folder, frame, wanted, p="2020-01-02")
    assert digest(folder, frame, wanted, p="") == digest(folder, frame, wanted, p=None)


def test_rows_of_a_file_with_partition_columns_only_are_counted(folder):
    wanted = columns(["p"], p="string")
    one = digest(folder, pl.DataFrame({"x": [1]}), wanted, p="a")
    three = digest(folder, pl.DataFrame({"x": [1, 2, 3]}), wanted, p="a")
    assert three == one + one + one


@each_case(
    ("kind", "one", "other"),
    [
        ("double", [0.5], [0.25]),
        ("boolean", [True], [False]),
        ("binary", [b"a"], [b"b"]),
        ("date", [date(2020, 1, 1)], [date(2020, 1, 2)]),
        ("decimal(10,2)", [Decimal("1.20")], [Decimal("1.21")]),
        ({"type": "array"}, [["a"]], [["b"]]),
        ({"type": "struct"}, [{"k": 1}], [{"k": 2}]),
        ({"type": "struct"}, [{"k": None}], [{"k": 2}]),
    ],
)
def test_values_of_every_type_count(folder, kind, one, other):
    wanted = columns(v=kind)
    first = digest(folder, pl.DataFrame({"v": one}), wanted)
    assert first == digest(folder, pl.DataFrame({"v": one}), wanted)
    assert first != digest(folder, pl.DataFrame({"v": other}), wanted)


def test_no_rows_have_the_digest_of_nothing(folder):
    assert digest(folder, pl.DataFrame({"x": [1]})[:0], columns(x="long")) == RowDigest()


def test_what_is_no_parquet_file_is_refused(folder):
    (folder / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(UnreadableFile):
        digest_file(folder / "bad.parquet", columns(x="long"), {})


def test_a_type_that_does_not_fit_is_refused(folder):
    with pytest.raises(UnreadableFile):
        digest(folder, pl.DataFrame({"x": ["a"]}), columns(x="long"))
