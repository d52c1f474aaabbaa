"""Lazy frames for Polars, which calls back for the next credential."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluice_recipient.access import DIR
from sluice_recipient.aws import aws_keys
from sluice_recipient.credential import AwsKeys
from sluice_recipient.engines.deltalake import SCHEMES
from sluice_recipient.engines.installed import load
from sluice_recipient.engines.url import load_pandas
from sluice_recipient.storage import aws_place, static_options, to_s3

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


def scan_polars(table: SharedTable, options: Mapping[str, Any]) -> Any:
    """Return a ``LazyFrame``."""
    polars = load("polars", "polars")
    if table.access_for("polars", SCHEMES) != DIR:
        return polars.from_pandas(load_pandas(table)).lazy()
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
