"""The official client, for what only it can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sluice_recipient.engines.installed import load
from sluice_recipient.errors import NotUsable
from sluice_recipient.url_files import Version

if TYPE_CHECKING:
    from sluice_recipient.table import SharedTable

# Options of Delta's reader in the official client's words. Capitals do not matter to Spark.
_SPARK_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], int | str]]]] = {
    "versionasof": ("version", int),
    "timestampasof": ("timestamp", str),
}


def load_pandas(table: SharedTable, version: Version | None = None) -> Any:
    """Return the whole table as a pandas frame. Its URLs are not renewed on the way."""
    reader = load("delta_sharing.reader", "url").DeltaSharingReader
    return reader(None, _Answered(table.delta_lines(version)), use_delta_format=True).to_pandas()


def load_spark(table: SharedTable, options: Mapping[str, str]) -> Any:
    """Return a DataFrame of the official Spark connector, which renews its URLs."""
    at = dict(_spark_option(table, name, value) for name, value in options.items())
    address = _address(table)
    return load("delta_sharing", "url").load_as_spark(address, **at)


class _Answered:
    """Stands where the official client asks a server: it opens whatever path the answer to that names.

    What it is given in its place was looked at. Its reader takes the lines out of the list.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def set_delta_format_header(self) -> None:
        """There is nothing to ask for any more."""

    def remove_delta_format_header(self) -> None:
        """As above."""

    def list_files_in_table(self, *_: Any, **__: Any) -> _Answered:
        return self


def _spark_option(table: SharedTable, name: str, value: str) -> tuple[str, int | str]:
    if name.lower() not in _SPARK_OPTIONS:
        raise NotUsable(
            f"table {table.name} is read by URLs, where there is no option {name};"
            " leave it out, or use versionAsOf or timestampAsOf"
        )
    own, convert = _SPARK_OPTIONS[name.lower()]
    try:
        return own, convert(value)
    except ValueError:
        raise NotUsable(f"{name} is {value!r}; it is a number such as 3") from None


def _address(table: SharedTable) -> str:
    if table.address is None:
        raise NotUsable("the official client reads its profile from a file; open the table by PROFILE#NAME")
    return table.address
