"""The names of the tables that deltalake writes for the tests, and how much can be compared of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# How many a history has at least.
COMMITS = 12


@dataclass(frozen=True, slots=True)
class Plan:
    """How many versions, or ranges of changes, have rows to compare; the others are refused or lost."""

    delta: int
    parquet: int

    def at_least(self, *, use_delta_format: bool) -> int:
        return self.delta if use_delta_format else self.parquet


def _both(count: int) -> Plan:
    return Plan(count, count)


FEATURES: Mapping[str, Plan] = {
    "all_types": _both(4),
    "append_only": _both(2),
    "checkpoints": _both(12),
    # Four versions lost their commits.
    "cleaned_log": _both(3),
    "compacted_log": _both(7),
    "constrained": _both(9),
    "converted": _both(2),
    "emptied": _both(4),
    "evolving": _both(7),
    # It lists features of readers, and uses none of them.
    "feature_names": _both(4),
    "feed": _both(10),
    "feed_evolving": _both(6),
    "feed_late": _both(7),
    "feed_mapped": Plan(6, 0),
    "feed_partitioned": _both(11),
    "feed_special": _both(4),
    "feed_vacuumed": _both(5),
    "generated": _both(3),
    "mapping_id": Plan(7, 0),
    "mapping_name": Plan(7, 0),
    "nested": _both(4),
    "no_stats": _both(4),
    "optimized": _both(8),
    "partition_empty": _both(2),
    "partition_strings": _both(3),
    "partition_types": _both(3),
    "restored": _both(7),
    "timestamp_ntz": Plan(3, 0),
    # Five versions lost their files.
    "vacuumed": _both(4),
    # deltalake writes no deletion vectors, but lists the feature and turns it on.
    "vectors_enabled": Plan(3, 0),
}

# What comes of a random step may differ by how many files a machine's cores write: some are left over.
HISTORIES: Mapping[str, Plan] = {
    "history_0": _both(11),
    "history_1": _both(11),
    "history_2": Plan(11, 0),
    "history_3": Plan(11, 0),
    "history_4": _both(11),
    "history_5": _both(11),
    "history_6": _both(11),
    "history_7": _both(11),
    "history_8": _both(10),
    "history_9": Plan(11, 0),
}

TABLES: Mapping[str, Plan] = {**FEATURES, **HISTORIES}

# Tables with which CI lets the gateway choose the format: some plain ones, and one for each feature that
# only the delta format expresses.
CHOSEN_FORMAT = frozenset(
    {
        *("all_types", "checkpoints", "feature_names", "feed", "partition_strings"),
        *("feed_mapped", "mapping_id", "mapping_name", "timestamp_ntz", "vectors_enabled"),
    }
)

# The feeds that deltalake reads, with every version alone and every range up to the latest.
CHANGES: Mapping[str, Plan] = {
    "feed": _both(19),
    "feed_evolving": Plan(7, 11),
    "feed_late": _both(3),
    "feed_partitioned": _both(21),
    "feed_vacuumed": _both(11),
    "history_4": _both(21),
    "history_5": _both(18),
    "history_6": _both(21),
    "history_7": Plan(13, 13),
    "history_8": Plan(11, 15),
}

# It reads no feed of mapped columns, and finds no file of one whose path has an escape in it.
BY_VERSION = (("feed_mapped", True), ("feed_special", True), ("feed_special", False))
MORE_BY_VERSION = (*BY_VERSION, ("history_9", True))
