"""One loader of botocore service models, and one scan of vendors, for all tests of this folder."""

from __future__ import annotations

from tests.fakes.botocore_loader import one_botocore_loader  # noqa: F401 -- a fixture
from tests.fakes.entry_points import one_scan_of_entry_points  # noqa: F401 -- a fixture
