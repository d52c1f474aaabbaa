"""The names of the tables that Spark writes for the tests."""

from __future__ import annotations

# How long a history is at least, after the table was made.
COMMITS = 12
HISTORIES = tuple(f"history_{seed:03}" for seed in range(20))
# Of `make test-deep`.
MORE_HISTORIES = tuple(f"history_{seed:03}" for seed in range(20, 200))

# A table for each thing that a log or a file may hold.
FEATURES = (
    "all_types",
    "clone",
    "clustered",
    "dropped_feature",
    "emptied",
    "empty",
    "feed",
    "feed_evolving",
    "feed_late",
    "feed_mapped",
    "feed_vectors",
    "generated",
    "identity",
    "in_commit_times",
    "in_commit_times_later",
    "log_cleaned",
    "mapping_id",
    "mapping_later",
    "mapping_name",
    "multi_part",
    "nested",
    "no_stats",
    "partition_values",
    "partitioned_by_time",
    "partitions_in_files",
    "random_prefixes",
    "restored",
    "row_tracking",
    "stats_struct",
    "times_out_of_order",
    "timestamp_ntz",
    "type_widening",
    "v2_json",
    "v2_parquet",
    "vacuumed",
    "variant",
    "vectors",
)

TABLES = (*FEATURES, *HISTORIES)
