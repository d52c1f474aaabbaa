from __future__ import annotations

import io

import polars as pl

from gateway.demo.checkpoint import to_checkpoint
from tests.builders import add, remove
from tests.cases import each_case


def read(content: bytes):
    return pl.read_parquet(io.BytesIO(content))


def test_every_action_is_a_row_with_one_column_set():
    [content] = to_checkpoint([{"protocol": {"minReaderVersion": 1}}, add("a"), remove("b")])

    frame = read(content)

    assert frame.columns == ["txn", "domainMetadata", "metaData", "protocol", "add", "remove"]
    set_columns = [[name for name, value in row.items() if value is not None] for row in frame.to_dicts()]
    assert set_columns == [["protocol"], ["add"], ["remove"]]


def test_null_and_missing_partition_values_are_told_apart():
    [content] = to_checkpoint([add("a", partitionValues={"p": None}), add("b", partitionValues={})])

    assert [row["add"]["partitionValues"] for row in read(content).to_dicts()] == [{"p": None}, {}]


@each_case("parts", [1, 2, 3, 7])
def test_parts_hold_all_actions_in_order(parts):
    contents = to_checkpoint([add(str(number)) for number in range(5)], parts)

    assert len(contents) == parts
    paths = [row["add"]["path"] for content in contents for row in read(content).to_dicts()]
    assert paths == ["0", "1", "2", "3", "4"]
