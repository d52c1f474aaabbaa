from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any, BinaryIO, cast

import polars as pl
import pytest

from gateway.commands.comparison.answer import FileEntry, TableAnswer
from gateway.commands.comparison.client import Refused, SharingClient
from gateway.commands.comparison.content import ContentComparison
from gateway.commands.comparison.difference import Weight

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long"}]})


class Store:
    """Serves numbers as parquet files, by file id."""

    def __init__(self, **rows: list[int]) -> None:
        self._contents = {key: parquet(values) for key, values in rows.items()}
        self.listed = rows

    async def download(self, file: FileEntry, target: BinaryIO) -> int:
        if file.id not in self._contents:
            raise Refused(403, "from the store of the files")
        return target.write(self._contents[file.id])

    def answer(self, schema: Any = SCHEMA, **sizes: int) -> TableAnswer:
        files = tuple(
            FileEntry(
                id=key,
                url=f"https://h/{key}.parquet",
                size=sizes.get(key, len(content)),
                partition_values={},
                stats=None,
                expires=False,
            )
            for key, content in self._contents.items()
        )
        metadata = {"schemaString": schema, "partitionColumns": []}
        return TableAnswer(version=1, protocol={}, metadata=metadata, files=files)

    def lose(self, key: str) -> None:
        del self._contents[key]


def parquet(rows: list[int]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame({"id": rows}, {"id": pl.Int64}).write_parquet(stream)
    return stream.getvalue()


def comparison(old: Store, new: Store, seen: list[tuple[str, int, int]] | None = None) -> ContentComparison:
    def on_file(subject: str, done: int, total: int) -> None:
        if seen is not None:
            seen.append((subject, done, total))

    return ContentComparison(cast("SharingClient", old), cast("SharingClient", new), on_file)


async def test_the_same_rows_in_other_files_are_the_same():
    old, new = Store(a=[1, 2], b=[3]), Store(c=[3, 1], d=[2])
    assert await comparison(old, new).compare("t", old.answer(), new.answer()) == []


async def test_other_rows_are_told_with_their_files():
    old, new = Store(a=[1, 2], b=[3]), Store(a=[1, 2], b=[4, 5])
    (finding,) = await comparison(old, new).compare("t", old.answer(), new.answer())
    assert (finding.what, finding.old, finding.new) == ("rows", 3, 4)
    assert finding.detail == "other content in files 1 (b)"


async def test_a_row_that_is_there_twice_counts_twice():
    old, new = Store(a=[1, 1, 2]), Store(a=[1, 2, 2])
    assert await comparison(old, new).compare("t", old.answer(), new.answer())


async def test_a_file_that_cannot_be_fetched_is_a_difference():
    old, new = Store(a=[1], b=[2]), Store(a=[1], b=[2])
    listed = new.answer()
    new.lose("b")
    (finding,) = await comparison(old, new).compare("t", old.answer(), listed)
    assert (
        finding.detail == "files that cannot be read in new: 1 (b), because 403 from the store of the files"
    )


async def test_a_store_that_fails_again_and_again_is_given_up():
    seen: list[tuple[str, int, int]] = []
    store = Store(**{f"f{number}": [number] for number in range(500)})
    listed = store.answer()
    for number in range(500):
        store.lose(f"f{number}")
    (finding, _) = await comparison(store, store, seen).compare("t", listed, listed)
    assert "cannot be read in old" in finding.detail
    assert len(seen) < 200


async def test_a_file_of_another_size_than_listed_is_a_difference():
    old, new = Store(a=[1]), Store(a=[1])
    (finding,) = await comparison(old, new).compare("t", old.answer(), new.answer(a=5))
    assert "not the 5 that are listed" in finding.detail


async def test_a_schema_that_cannot_be_read_is_told():
    old = Store(a=[1])
    for schema in ("{", "{}", None, "[]"):
        (finding,) = await comparison(old, old).compare("t", old.answer(schema), old.answer())
        assert "schema cannot be read" in finding.detail


async def test_progress_counts_the_files_of_both_servers():
    seen: list[tuple[str, int, int]] = []
    old, new = Store(a=[1]), Store(a=[1], b=[])
    await comparison(old, new, seen).compare("t", old.answer(), new.answer())
    assert seen == [("t", 1, 3), ("t", 2, 3), ("t", 3, 3)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"vector": {"storageType": "i"}}, "1 file with deletion vectors"),
        ({"configuration": {"delta.columnMapping.mode": "name"}}, "its columns are mapped"),
        ({"type_": "variant"}, "it has variants"),
    ],
)
async def test_rows_that_cannot_be_made_of_the_files_are_noted_and_nothing_is_read(change, reason):
    seen: list[tuple[str, int, int]] = []
    store = Store(a=[1])
    answer = store.answer(SCHEMA.replace("long", change.get("type_", "long")))
    files = tuple(replace(file, deletion_vector=change.get("vector")) for file in answer.files)
    metadata = {**answer.metadata, "configuration": change.get("configuration", {})}
    answer = replace(answer, files=files, metadata=metadata)
    (finding,) = await comparison(store, store, seen).compare("t", answer, answer)
    assert (finding.weight, finding.detail) == (Weight.NOTE, f"not compared: {reason}")
    assert seen == []
