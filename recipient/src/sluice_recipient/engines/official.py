"""The official client, for what only it can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_recipient.engines.installed import load
from sluice_recipient.errors import NotUsable
from sluice_recipient.url_files import Version

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


def load_pandas(table: SharedTable, version: Version | None = None) -> Any:
    """Return the whole table as a pandas frame. Its URLs are not renewed on the way."""
    at = {} if version is None else {"version" if isinstance(version, int) else "timestamp": version}
    address = _address(table)
    return load("delta_sharing", "url").load_as_pandas(address, **at)


def load_spark(table: SharedTable) -> Any:
    """Return a DataFrame of the official Spark connector, which renews its URLs."""
    address = _address(table)
    return load("delta_sharing", "url").load_as_spark(address)


def _address(table: SharedTable) -> str:
    if table.address is None:
        raise NotUsable("the official client reads its profile from a file; open the table by PROFILE#NAME")
    return table.address
