"""Files of a log shared out, so that a bounded part of it is in memory as it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_MAX_FILES: Final = 256
# Unless one file alone is more.
_MAX_BYTES: Final = 8 * 1024 * 1024


def share_out(
    items: Iterable[T], size_of: Callable[[T], int], is_alone: Callable[[T], bool] = lambda _: False
) -> Iterator[Sequence[T]]:
    """Return items in their order, as many at a time as may be read together."""
    batch: list[T] = []
    size = 0
    for item in items:
        apart = is_alone(item) or any(map(is_alone, batch[:1]))
        if batch and (apart or len(batch) == _MAX_FILES or size + size_of(item) > _MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += size_of(item)
    if batch:
        yield batch
