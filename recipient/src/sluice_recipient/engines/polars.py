"""Lazy frames for Polars, which calls back for the next credential."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sluice_recipient.access import DIR
from sluice_recipient.aws import aws_keys
from sluice_recipient.credential import AwsKeys
from sluice_recipient.engines.arrow import UrlStream, open_urls
from sluice_recipient.engines.deltalake import SCHEMES
from sluice_recipient.engines.installed import load
from sluice_recipient.storage import aws_place, static_options, to_s3
from sluice_recipient.url_files import Version

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


def scan_polars(table: SharedTable, options: Mapping[str, Any]) -> Any:
    """Return a ``LazyFrame``."""
    polars = load("polars", "polars")
    if table.access_for("polars", SCHEMES) != DIR:
        # Of the options, what a table's storage is does not matter here; the version does.
        return scan_urls(open_urls(table, _version(options.get("version"))))
    # Polars reads the log with delta-rs.
    load("deltalake", "polars")
    access = _access(table)
    given = options.get("storage_options") or {}
    access["storage_options"] = {**access["storage_options"], **given}
    return polars.scan_delta(to_s3(table.location), **{**options, **access})


def _access(table: SharedTable) -> dict[str, Any]:
    credential = table.credentials()
    if not isinstance(credential.secret, AwsKeys):
        return {"storage_options": static_options(credential), "credential_provider": None}

    def provide() -> tuple[dict[str, str], int]:
        current = table.credentials()
        keys = aws_keys(current)
        secret = {
            "aws_access_key_id": keys.access_key_id,
            "aws_secret_access_key": keys.secret_access_key,
            "aws_session_token": keys.session_token,
        }
        return secret, int(current.expires_at.timestamp())

    return {"storage_options": aws_place(credential.secret), "credential_provider": provide}


def scan_urls(found: Any) -> Any:
    """Return a ``LazyFrame`` of the rows of a table's files; of a stream, only the rows that are read."""
    polars = load("polars", "polars")
    if not isinstance(found, UrlStream):
        return polars.from_arrow(found).lazy()

    def read(
        columns: list[str] | None, predicate: Any, limit: int | None, _batch_size: int | None
    ) -> Iterator[Any]:
        # The limit comes before the condition: of a query that has them the other way round, Polars tells the
        # condition alone. What that looks at is among the columns.
        for table in found.tables(columns):
            frame = polars.from_arrow(table)
            if limit is not None:
                frame = frame.head(limit)
                limit -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if limit == 0:
                return

    schema = polars.from_arrow(found.schema.empty_table()).schema
    return load("polars.io.plugins", "polars").register_io_source(read, schema=schema)


def _version(given: int | str | datetime | None) -> Version | None:
    if not isinstance(given, datetime):
        return given
    # A time of no zone is one of the machine's own to Python, and of UTC to Delta.
    zoned = given if given.tzinfo else given.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
