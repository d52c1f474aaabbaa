"""Tables by URLs, through the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_recipient.engines.installed import load
from sluice_recipient.errors import NotUsable

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable


def load_pandas(table: SharedTable) -> Any:
    """Return the whole table as a pandas frame."""
    return load("delta_sharing", "url").load_as_pandas(_address(table))


def load_spark(table: SharedTable) -> Any:
    """Return a DataFrame of the official Spark connector."""
    return load("delta_sharing", "url").load_as_spark(_address(table))


def _address(table: SharedTable) -> str:
    if table.address is None:
        raise NotUsable("the official client reads its profile from a file; open the table by PROFILE#NAME")
    return table.address
