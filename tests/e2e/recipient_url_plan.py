"""The tables of deltalake's that a recipient reads by URLs in the parquet format."""

from __future__ import annotations

NAMES = (
    *("all_types", "nested", "evolving", "generated", "emptied", "no_stats", "optimized"),
    *("partition_types", "partition_strings", "partition_empty"),
)
