from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.location import parse_location
from gateway.services.snapshot.answer import batch
from gateway.services.snapshot.answer.page import render_files
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.answer.segment import split_segments
from gateway.services.snapshot.log.actions import NO_FILES, NOT_REMOVED, Actions
from gateway.services.snapshot.log.reconcile import keys_of
from gateway.services.snapshot.state.growth import grow
from gateway.services.snapshot.state.segments import SEGMENT_ROWS
from tests.fakes.grants import GRANT
from tests.fakes.snapshot_metrics import FakeSnapshotMetrics
from tests.hypothesis_profiles import examples
from tests.unit.services.snapshot.answer.pages import DELTA, PARQUET, files_of, many, rows_of, seen_files


class Lines:
    """Renders files, and tells which segments were rendered for it."""

    def __init__(self, capacity: int = 64 * 1024 * 1024) -> None:
        self.metrics = FakeSnapshotMetrics()
        self.rendered = RenderedPages(capacity, self.metrics)

    def pages(self, files, line=PARQUET, grant=GRANT, **options):
        self.metrics.segments.clear()
        return list(render_files(files, line, grant, rendered=self.rendered, **options))

    @property
    def was_kept(self) -> list[bool]:
        return list(self.metrics.segments)


@pytest.fixture
def lines():
    return Lines()


def removed(files, *rows: int):
    """Return the files after a commit that removes some of them."""
    return grow(files, [_commit(removed=keys_of(files.frame[list(rows)]))])


def added(files, *names: str):
    return grow(files, [_commit(files=rows_of(*({"path": name} for name in names)))])


def _commit(files: pl.DataFrame = NO_FILES, removed: pl.DataFrame = NOT_REMOVED) -> Actions:
    return Actions(files=files, removed=removed, protocol=None, metadata=None)


def test_a_page_is_a_segment_of_the_rows_and_says_so(lines):
    first, second, third = lines.pages(many(2 * SEGMENT_ROWS + 1))

    assert [page.files for page in (first, second, third)] == [SEGMENT_ROWS, SEGMENT_ROWS, 1]
    assert all(group.is_segment for page in (first, second, third) for group in page.groups)


def test_segments_are_rendered_once(lines):
    files = many(3 * SEGMENT_ROWS)
    before = lines.pages(files)

    assert lines.pages(files) == before
    assert lines.was_kept == [True] * 3


def test_a_commit_leaves_all_segments_but_those_that_it_touches(lines):
    files = many(3 * SEGMENT_ROWS)
    before = lines.pages(files)

    after = lines.pages(added(removed(files, SEGMENT_ROWS + 7), "new"))

    assert lines.was_kept == [True, False, True, False]
    assert [page.groups[0].paths for page in (before[0], before[2])] == [
        page.groups[0].paths for page in (after[0], after[2])
    ]
    assert [page.files for page in after] == [SEGMENT_ROWS, SEGMENT_ROWS - 1, SEGMENT_ROWS, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"line": DELTA},
        {"line": replace(PARQUET, version=3)},
        {"grant": replace(GRANT, location=parse_location("s3://lake/elsewhere"))},
        {"grant": replace(GRANT, auxiliary_locations=())},
    ],
    ids=["format", "version", "location", "auxiliary locations"],
)
def test_what_is_kept_is_for_answers_of_its_own_form_only(lines, change):
    files = many(3)
    lines.pages(files)

    again = lines.pages(files, **change)

    assert lines.was_kept == [False]
    assert again == Lines().pages(files, **change)


def test_a_segment_of_which_hints_keep_all_is_served_as_it_is_kept(lines):
    files = many(3 * SEGMENT_ROWS)
    lines.pages(files)
    numbers = pl.int_range(files.height, eager=True)

    whole, rest = lines.pages(files, kept=(numbers >= 2 * SEGMENT_ROWS) | (numbers == 5))

    assert lines.was_kept == [True]
    assert (whole.files, whole.groups[0].is_segment) == (SEGMENT_ROWS, True)
    assert (rest.files, rest.groups[0].is_segment) == (1, False)


def test_rows_of_a_limited_answer_are_no_segment(lines):
    files = many(10, stats='{"numRecords":1}')

    (page,) = lines.pages(files, limit=3)

    assert (page.files, page.groups[0].is_segment) == (3, False)


def test_a_segment_of_long_lines_is_several_pages_and_each_the_same_again(lines):
    files = many(40, stats='"' + "x" * 100_000 + '"')

    first, again = lines.pages(files), lines.pages(files)

    assert len(first) > 2
    assert first == again
    assert all(page.groups[0].is_segment and len(page.lines) <= batch.MAX_BYTES for page in first)


def test_a_segment_without_a_live_file_gives_no_page(lines):
    files = files_of(*({"path": f"f{number}"} for number in range(3)), live=[False] * 3)

    assert lines.pages(files) == []


@settings(max_examples=examples(0.6))
@given(data=st.data())
def test_segments_and_the_rest_are_exactly_what_is_wanted(data):
    height = data.draw(st.sampled_from([1, 999, 1000, 1001, 2500]))
    density = data.draw(st.sampled_from([0, 1, 50, 99, 100]))
    live = [data.draw(st.integers(0, 99)) < 90 if number % 100 == 0 else True for number in range(height)]
    files = replace(many(height), live=pl.Series(live), num_files=sum(live))
    kept = pl.Series(
        [(number * 37) % 100 < density or number // SEGMENT_ROWS == 1 for number in range(height)]
    )

    pages = Lines().pages(files, kept=kept)

    names = [file["url"] for file in seen_files(*pages)]
    wanted = [f"f{number}" for number in range(height) if live[number] and kept[number]]
    assert len(names) == len(wanted)
    assert sorted(name.rpartition("/")[2].partition("?")[0] for name in names) == sorted(wanted)
    for number in split_segments(files, kept)[0]:
        rows = range(number * SEGMENT_ROWS, min((number + 1) * SEGMENT_ROWS, height))
        assert all(kept[row] for row in rows if live[row])
