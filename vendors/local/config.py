"""The options of a local storage entry: none, its prefix says it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.ports import OptionFault


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    return [OptionFault(path=(name,), message="unknown option: a local storage has none") for name in options]
