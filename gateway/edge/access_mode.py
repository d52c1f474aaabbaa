"""Which access modes an answer offers, given the client's and the table's."""

from __future__ import annotations

from typing import Final

from gateway.edge.capabilities import Capabilities
from gateway.errors import Unsupported
from gateway.v1.catalog_pb2 import ACCESS_MODE_DIR, ACCESS_MODE_URL, AccessMode, Table

NAMES: Final[dict[AccessMode.ValueType, str]] = {ACCESS_MODE_URL: "url", ACCESS_MODE_DIR: "dir"}


def negotiate(client: Capabilities, table: Table) -> str:
    """Return what the answer's capabilities say of access modes; empty when the client did not ask.

    A client that knows only ``url`` has no use for a table that is ``dir`` only. The other way round it is
    the client that fails, by what it is told.
    """
    if not client.access_modes:
        return ""
    words = dict(client.access_modes)
    offered = [mode for mode in table.access_modes if mode in NAMES]
    common = [words[mode] for mode in offered if mode in words]
    if not common and ACCESS_MODE_URL in words:
        raise _dir_only(table)
    return f"{client.access_key}={','.join(common or (NAMES[mode] for mode in offered))}"


def require_url(table: Table) -> None:
    """Refuse to hand out URLs for a table that does not offer them."""
    if ACCESS_MODE_URL not in table.access_modes:
        raise _dir_only(table)


def require_dir(table: Table) -> None:
    """Refuse to hand out a credential for a table that does not offer its directory."""
    if ACCESS_MODE_DIR not in table.access_modes:
        raise Unsupported(f"table {_name(table)} does not offer dir access, only url; query it for its files")


def _dir_only(table: Table) -> Unsupported:
    return Unsupported(
        f"table {_name(table)} offers dir access only, and no URLs; read it with a client that supports dir"
    )


def _name(table: Table) -> str:
    return f"{table.share}.{table.schema}.{table.name}"
