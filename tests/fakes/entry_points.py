"""One scan of the installed vendors for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_scan_of_entry_points() -> Iterator[None]:
    # Each search for a vendor reads the metadata of all installed packages, twice whenever a test opens one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.adapters.vendors.entry_points", cache(entry_points))
        yield
