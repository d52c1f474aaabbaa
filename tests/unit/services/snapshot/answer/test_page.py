from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.services.snapshot.answer.page import (
    MAX_BYTES,
    MAX_FILES,
    MAX_STATS_BYTES,
    LineFormat,
    delta_file_id,
    parquet_file_id,
    render_pages,
)
from gateway.services.snapshot.log.actions import FILES
from gateway.v1.snapshot_pb2 import HOLE_EXPIRATION, HOLE_URL, FilePage

_LINES = LineFormat(file_id=parquet_file_id)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_EXPIRATION = 1652140800000


def files_of(*rows):
    plain = {"encoded": "p", "partitionValues": {}, "size": 1, "stats": None, "hasDeletionVector": False}
    return pl.DataFrame([{**plain, **row} for row in rows], schema=FILES)


def many(count: int, **fields):
    return files_of(*({"path": f"f{number}", "encoded": f"f{number}", **fields} for number in range(count)))


def splice(page: FilePage) -> bytes:
    """Fill the holes as an edge does."""
    paths = iter(page.paths.split(b"\n"))
    content: dict[int, Callable[[], bytes]] = {
        HOLE_URL: lambda: b"https://host/" + next(paths),
        HOLE_EXPIRATION: lambda: b"%d" % _EXPIRATION,
    }
    pieces, position = [], 0
    for offset, kind in zip(page.holes, page.hole_kinds, strict=True):
        pieces += [page.lines[position:offset], content[kind]()]
        position = offset
    assert next(paths, None) is None
    return b"".join([*pieces, page.lines[position:]])


def spliced(*pages: FilePage):
    return [json.loads(line)["file"] for page in pages for line in splice(page).decode().splitlines()]


def test_a_file_is_a_line_with_what_the_log_says_of_it():
    files = files_of(
        {
            "path": "day=1/a",
            "encoded": "day%3D1/a",
            "partitionValues": {"day": "1"},
            "size": 573,
            "stats": '{"numRecords":1}',
        }
    )

    [page] = render_pages(files, _LINES)

    assert splice(page) == (
        b'{"file":{"url":"https://host/day%3D1/a","id":"'
        + hashlib.md5(b"day=1/a").hexdigest().encode()
        + b'",'
        b'"partitionValues":{"day":"1"},"size":573,"stats":"{\\"numRecords\\":1}",'
        b'"expirationTimestamp":1652140800000}}\n'
    )
    assert (page.files, page.file_bytes, page.location) == (1, 573, 0)


def test_a_file_without_statistics_has_no_such_field():
    [file] = spliced(*render_pages(files_of({"path": "a"}), _LINES))

    assert set(file) == {"url", "id", "partitionValues", "size", "expirationTimestamp"}


def test_files_with_and_without_statistics_stand_side_by_side():
    files = files_of({"path": "a", "stats": "x"}, {"path": "b"}, {"path": "c", "stats": ""})

    assert [file.get("stats") for file in spliced(*render_pages(files, _LINES))] == ["x", None, ""]


def test_a_null_partition_value_is_empty_in_this_format():
    files = files_of({"path": "a", "partitionValues": {"p": None, "q": "", "r": "null"}})

    assert spliced(*render_pages(files, _LINES))[0]["partitionValues"] == {"p": "", "q": "", "r": "null"}


def test_an_answer_by_version_states_version_and_timestamp():
    line = LineFormat(file_id=parquet_file_id, version=4, timestamp=1700000000000)

    [file] = spliced(*render_pages(files_of({"path": "a"}), line))

    assert (file["version"], file["timestamp"]) == (4, 1700000000000)


def test_ids_are_hashes_of_the_path_in_the_log():
    path = "date=2021-04-28/part-00000-8b0086f2-7b27-4935-ac5a-8ed6215a6640.c000.snappy.parquet"

    # What the reference server gives for this path.
    assert parquet_file_id(path.encode()) == "9f1a49539c5cffe1ea7f9e055d5c003c"
    assert delta_file_id(b"a") == hashlib.sha256(b"a").hexdigest()


def test_no_files_are_no_pages():
    assert list(render_pages(files_of(), _LINES)) == []


def test_a_page_has_at_most_so_many_files_and_keeps_their_order():
    pages = list(render_pages(many(2 * MAX_FILES + 1), _LINES))

    assert [page.files for page in pages] == [MAX_FILES, MAX_FILES, 1]
    assert [file["url"] for file in spliced(*pages)] == [
        f"https://host/f{n}" for n in range(2 * MAX_FILES + 1)
    ]


@pytest.mark.parametrize("text", ["x", '"', "é", "\u2028", "🚰"])
def test_a_page_has_at_most_so_many_bytes(text):
    pages = list(render_pages(many(200, stats=text * 20_000), _LINES))

    assert sum(page.files for page in pages) == 200
    assert all(len(page.lines) <= MAX_BYTES for page in pages)
    assert len(pages) < 200


def test_long_partition_values_make_short_pages():
    pages = list(render_pages(many(100, partitionValues={"a": None, "b": "é" * 20_000}), _LINES))

    assert sum(page.files for page in pages) == 100
    assert all(len(page.lines) <= MAX_BYTES for page in pages)


def test_long_partition_names_make_short_pages():
    names = {f"{number:02d}{'k' * 200}": None for number in range(50)}

    pages = list(render_pages(many(1000, partitionValues=names), _LINES))

    assert sum(page.files for page in pages) == 1000
    assert all(len(page.lines) <= MAX_BYTES for page in pages)


def test_statistics_that_would_fill_a_message_are_left_out():
    files = files_of({"path": "a", "stats": "x" * (MAX_STATS_BYTES + 1)}, {"path": "b", "stats": "x"})

    [first, second] = spliced(*render_pages(files, _LINES))

    assert "stats" not in first
    assert second["stats"] == "x"


def test_pages_are_rendered_when_they_are_asked_for():
    rendered = []

    def file_id(path):
        rendered.append(path)
        return "id"

    pages = render_pages(many(3 * MAX_FILES), LineFormat(file_id=file_id))

    next(pages)
    assert len(rendered) == MAX_FILES
    next(pages)
    assert len(rendered) == 2 * MAX_FILES


@pytest.mark.parametrize(
    ("records", "limit", "expected"),
    [
        ([10, 10, 10], None, 3),
        ([10, 10, 10], 0, 0),
        ([10, 10, 10], 1, 1),
        ([10, 10, 10], 10, 1),
        ([10, 10, 10], 11, 2),
        ([10, 10, 10], 31, 3),
        ([10, None, 10], 11, 3),
        ([None, None], 1, 2),
        ([0, 0, 5], 5, 3),
        ([-7, 5, 5], 5, 2),
        ([2**63 - 1, 2**63 - 1, 1], 2**63 - 1, 1),
    ],
)
def test_a_limit_takes_the_fewest_files_from_the_front(records, limit, expected):
    files = files_of(
        *(
            {"path": str(number), "stats": None if count is None else json.dumps({"numRecords": count})}
            for number, count in enumerate(records)
        )
    )

    assert sum(page.files for page in render_pages(files, _LINES, limit)) == expected


def test_a_limit_reaches_over_pages():
    files = many(3 * MAX_FILES, stats='{"numRecords":2}')

    pages = list(render_pages(files, _LINES, 2 * MAX_FILES + 1))

    assert [page.files for page in pages] == [MAX_FILES, 1]


@pytest.mark.parametrize("stats", ["", "not json", "[1]", '{"numRecords":"x"}', '{"numRecords":1.5}', "null"])
def test_statistics_that_do_not_count_count_for_nothing(stats):
    assert sum(page.files for page in render_pages(many(3, stats=stats), _LINES, 1)) == 3


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(_TEXT, st.none() | _TEXT, max_size=3),
            st.none() | _TEXT,
            st.integers(0, 2**53 - 1),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_text_makes_valid_lines_of_ascii(rows):
    files = files_of(
        *(
            {"path": str(n), "partitionValues": values, "stats": stats, "size": size}
            for n, (values, stats, size) in enumerate(rows)
        )
    )

    [page] = render_pages(files, _LINES)

    assert page.lines.isascii()
    assert len(splice(page).decode().splitlines()) == len(rows)
    for file, (values, stats, size) in zip(spliced(page), rows, strict=True):
        assert file["partitionValues"] == {key: value or "" for key, value in values.items()}
        assert file.get("stats") == stats
        assert file["size"] == size
        assert file["expirationTimestamp"] == _EXPIRATION
