"""What the documentation says of metrics, against what the processes declare."""

from __future__ import annotations

import re

from tests.declared_metrics import declared_metrics
from tests.repository import ROOT

NAME = re.compile(r"`(sluice_\w+)(?:\{([\w,]*)\})?`")


def documented() -> set[str]:
    """Return the metrics that have a row of a table."""
    texts = [(ROOT / "docs" / name).read_text() for name in ("operations.md", "pipeline.md")]
    rows = [
        line.split("|")[1] for text in texts for line in text.splitlines() if line.startswith("| `sluice_")
    ]
    return {name for row in rows for name, _ in NAME.findall(row)}


def test_every_metric_is_documented_and_none_that_is_not_there():
    assert documented() == set(declared_metrics())
