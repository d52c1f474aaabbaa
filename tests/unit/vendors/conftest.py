"""One loader of botocore service models for all tests of this folder."""

from __future__ import annotations

from tests.fakes.botocore_loader import one_botocore_loader  # noqa: F401 -- a fixture
