"""The columns of the tables of usage, and the fields of audit events that they come from."""

from __future__ import annotations

from typing import Final

# The events that this job understands; what is newer is kept in quarantine until a newer job reads it.
SCHEMA_VERSION: Final = 1

TEXTS: Final = (
    *("id", "replica", "kind", "operation", "outcome", "principal", "actor", "share", "schema", "table"),
    *("table_id", "mode", "credential_id", "request_id", "remote", "user_agent"),
)
COUNTS: Final = ("files", "file_bytes", "duration_ms")
TIMES: Final = ("at", "expires_at")
FIELDS: Final = frozenset((*TEXTS, *COUNTS, *TIMES, "schema_version", "version", "locations"))

EVENTS: Final = (
    "day DATE, at TIMESTAMP, id STRING, kind STRING, operation STRING, outcome STRING, principal STRING, "
    "actor STRING, share STRING, schema STRING, table STRING, table_id STRING, version BIGINT, mode STRING, "
    "locations ARRAY<STRING>, credential_id STRING, expires_at TIMESTAMP, files BIGINT, file_bytes BIGINT, "
    "request_id STRING, remote STRING, user_agent STRING, duration_ms BIGINT, replica STRING, "
    "schema_version BIGINT, more MAP<STRING,STRING>"
)
QUARANTINE: Final = (
    "source_file STRING, line_number BIGINT, reason STRING, detail STRING, line STRING, raw BINARY"
)
USAGE_DAILY: Final = (
    "day DATE, recipient STRING, share STRING, schema STRING, table STRING, mode STRING, requests BIGINT, "
    "grants BIGINT, credentials BIGINT, files BIGINT, bytes_granted BIGINT, denials BIGINT, "
    "failures BIGINT, p50_ms DOUBLE, p99_ms DOUBLE, first_at TIMESTAMP, last_at TIMESTAMP"
)
USAGE_HOURLY: Final = (
    "day DATE, hour TIMESTAMP, recipient STRING, requests BIGINT, files BIGINT, bytes_granted BIGINT, "
    "credentials BIGINT, denials BIGINT, failures BIGINT"
)
NETWORK_DAILY: Final = (
    "day DATE, recipient STRING, network STRING, requests BIGINT, denials BIGINT, first_at TIMESTAMP, "
    "last_at TIMESTAMP"
)
LEDGER: Final = (
    "day DATE, valid_from TIMESTAMP, valid_until TIMESTAMP, recipient STRING, actor STRING, mode STRING, "
    "opens STRING, location STRING, place STRING, share STRING, schema STRING, table STRING, "
    "table_id STRING, version BIGINT, files BIGINT, credential_id STRING, remote STRING, "
    "user_agent STRING, request_id STRING, event_id STRING"
)
ANOMALIES: Final = (
    "day DATE, rule STRING, recipient STRING, share STRING, schema STRING, table STRING, network STRING, "
    "measure STRING, measured DOUBLE, threshold DOUBLE, explanation STRING"
)

# By the name of the directory below the tables' location.
TABLES: Final = {
    "events": EVENTS,
    "quarantine": QUARANTINE,
    "usage_daily": USAGE_DAILY,
    "usage_hourly": USAGE_HOURLY,
    "network_daily": NETWORK_DAILY,
    "credential_ledger": LEDGER,
    "anomalies": ANOMALIES,
}


def columns_of(table: str) -> list[str]:
    """Return the names of a table's columns, in order."""
    return list(types_of(table))


def types_of(table: str) -> dict[str, str]:
    """Return the types of a table's columns by name, in order."""
    # No comma but those between columns has a blank behind it.
    return dict(column.split(" ", 1) for column in TABLES[table].split(", "))
