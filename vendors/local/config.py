"""The options of a local storage entry: none, its prefix says it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def check(options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with the options, in words."""
    return [f"unknown option {name!r}: a local storage has none" for name in options]
