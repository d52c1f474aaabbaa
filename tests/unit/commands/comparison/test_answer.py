from __future__ import annotations

from typing import Any

import pytest

from gateway.commands.comparison.answer import Format, NotTheProtocol, read_answer, read_file
from tests.cases import each_case

ADD: dict[str, Any] = {
    "path": "https://h/t/p=1/one.parquet?sig=x",
    "partitionValues": {"p": "1"},
    "size": 9,
    "stats": "{}",
    "modificationTime": 5,
    "deletionVector": {"storageType": "p", "pathOrInlineDv": "https://h/t/dv.bin?sig=x", "offset": 1},
}


def delta(**changes: object) -> dict[str, Any]:
    return {"id": "a", "deltaSingleAction": {"add": {**ADD, **changes}}, "expirationTimestamp": 7}


def test_the_heads_of_the_delta_format_are_taken_out_of_their_wrapping():
    heads = {
        "protocol": {"deltaProtocol": {"minReaderVersion": 3, "readerFeatures": ["b", "a"]}},
        "metaData": {"deltaMetadata": {"id": "m"}, "size": 9},
    }
    answer = read_answer(4, heads, [])
    assert (answer.version, answer.format) == (4, Format.DELTA)
    # A set, in whatever order a server has it.
    assert answer.protocol == {"minReaderVersion": 3, "readerFeatures": ["a", "b"]}
    assert answer.metadata == {"id": "m", "size": 9}


def test_the_heads_of_the_parquet_format_are_taken_as_they_are():
    answer = read_answer(4, {"protocol": {"minReaderVersion": 1}, "metaData": {"id": "m"}}, [])
    assert (answer.format, answer.protocol, answer.metadata) == (
        Format.PARQUET,
        {"minReaderVersion": 1},
        {"id": "m"},
    )


def test_an_added_file_of_the_delta_format_is_a_file():
    file = read_file(delta())
    assert (file.id, file.name, file.size, file.stats) == ("a", "one.parquet", 9, "{}")
    assert (file.partition_values, file.expires) == ({"p": "1"}, True)
    assert file.others == {"modificationTime": 5}


def test_a_vector_is_known_by_its_file_or_by_what_it_holds():
    assert read_file(delta()).deletion_vector == {
        "storageType": "p",
        "pathOrInlineDv": "dv.bin",
        "offset": 1,
    }
    inline = {"storageType": "i", "pathOrInlineDv": "a/b?c"}
    assert read_file(delta(deletionVector=inline)).deletion_vector == inline
    assert read_file(delta(deletionVector=None)).deletion_vector is None


@each_case(
    "value",
    [
        "file",
        {"url": "https://h"},
        {"id": "a"},
        {"id": "a", "url": "https://h", "partitionValues": ["x"]},
        {"id": "a", "deltaSingleAction": {"remove": {}}},
        {"id": "a", "deltaSingleAction": []},
        {"id": "a", "deltaSingleAction": {"add": {}}},
        delta(deletionVector="x"),
    ],
)
def test_a_file_that_the_protocol_does_not_know_is_an_error(value):
    with pytest.raises(NotTheProtocol):
        read_file(value)


@each_case(
    "heads",
    [
        {},
        {"protocol": {}},
        {"protocol": {"deltaProtocol": []}, "metaData": {"deltaMetadata": {}}},
        {"protocol": {"deltaProtocol": {}}, "metaData": {"id": "m"}},
    ],
)
def test_heads_that_are_missing_are_an_error(heads):
    with pytest.raises(NotTheProtocol):
        read_answer(1, heads, [])
