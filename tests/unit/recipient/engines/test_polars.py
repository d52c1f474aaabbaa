from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from sluice_recipient.engines.arrow import UrlStream
from sluice_recipient.engines.polars import scan_urls

WHOLE = pl.DataFrame({"id": range(10), "note": list("abcdefghij")})


class Frames(UrlStream):
    """Frames in place of files, without Arrow; it keeps how many of them were read."""

    def __init__(self, *frames):
        self.schema = SimpleNamespace(empty_table=frames[0].clear)
        self.read = 0
        self._frames = frames

    def tables(self, columns=None):
        for frame in self._frames:
            self.read += 1
            yield frame if columns is None else frame.select(columns)


@pytest.fixture
def frames(monkeypatch) -> Frames:
    monkeypatch.setattr(pl, "from_arrow", lambda frame: frame)
    return Frames(WHOLE[0:2], WHOLE[2:5], WHOLE[5:10])


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize(
    "query",
    [
        lambda frame: frame.head(3),
        lambda frame: frame.head(0),
        lambda frame: frame.head(3).filter(pl.col("id") >= 2),
        lambda frame: frame.filter(pl.col("id") >= 2).head(3),
        lambda frame: frame.head(6).filter(pl.col("id") >= 2).select("note"),
        lambda frame: frame.head(6).filter(pl.col("id") >= 2).head(5),
        lambda frame: frame.filter(pl.col("id") >= 1).head(4).filter(pl.col("id") >= 3),
        lambda frame: frame.head(20).filter(pl.col("id") >= 8),
        lambda frame: frame.slice(3, 4).filter(pl.col("id") >= 5),
    ],
    ids=[
        *("head", "no_head", "head_filter", "filter_head", "head_filter_select", "head_filter_head"),
        *("filter_head_filter", "head_of_more_than_there_is", "slice_filter"),
    ],
)
def test_limits_and_conditions_find_what_they_find_in_memory(frames, query, engine):
    found: Any = query(scan_urls(frames)).collect(engine=engine)

    assert found.to_dicts() == query(WHOLE).to_dicts()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_no_file_is_read_behind_a_limit_whatever_a_condition_leaves_of_it(frames, engine):
    scan_urls(frames).head(2).filter(pl.col("id") >= 5).collect(engine=engine)

    assert frames.read == 1
