"""Values that parquet writes by counts and lengths of their own: few bytes may claim, or stand for, many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from gateway.services.snapshot.log.deltas import DIFFERENCES, Deltas
from gateway.services.snapshot.log.footer import Column
from gateway.services.snapshot.log.page_content import values_of
from gateway.services.snapshot.log.pages import Page
from gateway.services.snapshot.log.thrift import Malformed

# By the numbers that the format gives to encodings: texts behind their lengths, and texts as what they share
# with the text before.
_LENGTHS, _PREFIXES = 6, 7
COUNTED: Final = frozenset((DIFFERENCES, _LENGTHS, _PREFIXES))


def measure_counted(content: bytes, page: Page, codec: int, path: Sequence[Column]) -> int:
    """Return how many bytes a page stands for beside its own; raise ``Malformed`` for what it cannot."""
    values = values_of(content, page, codec, path)
    first = Deltas(values, 0, page.num_values)
    return _measure_prefixes(values, first, page) if page.encoding == _PREFIXES else 0


def _measure_prefixes(values: bytes, first: Deltas, page: Page) -> int:
    second = Deltas(values, first.end, page.num_values)
    prefixes, suffixes = first.decode(), second.decode()
    if prefixes.len() != suffixes.len():
        raise Malformed("a page has more texts than ends of texts")
    if not prefixes.len():
        return 0
    # One by one before they are added up: a sum of numbers that are long enough is any number.
    left = len(values) - second.end
    for lengths, most in ((prefixes, page.size * page.num_values), (suffixes, left)):
        if not lengths.is_between(0, most).all():
            raise Malformed("a text is longer than what it is made of")
    if _sum(suffixes) > left:
        raise Malformed("texts are longer than what they are made of")
    before = (prefixes + suffixes).shift(1, fill_value=0)
    if not (prefixes <= before).all():
        raise Malformed("a text shares more with the text before than that has")
    return _sum(prefixes)


def _sum(numbers: pl.Series) -> int:
    return int(numbers.cast(pl.Int128).sum())
