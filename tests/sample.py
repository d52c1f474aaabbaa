"""The sample tables, built once in a test run for all its processes."""

from __future__ import annotations

import os

import pytest

from gateway.demo.sample import SampleCatalog, ensure_sample


def shared_sample(factory: pytest.TempPathFactory) -> SampleCatalog:
    """Return the sample of this test run; the first process that asks builds it, behind a file lock.

    Its 10,000 files take seconds. No test writes below its directory.
    """
    base = factory.getbasetemp()
    # Each worker of pytest-xdist has a directory of its own below that of the run.
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return ensure_sample(run / "sample" / "tables", lambda _: None)
