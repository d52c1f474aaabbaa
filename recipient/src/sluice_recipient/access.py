"""Which access a table is read by: credentials for its directory, or one URL per file."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from sluice_recipient.client import TableInfo
from sluice_recipient.errors import NotUsable, ProfileError
from sluice_recipient.storage import scheme_of

Mode: TypeAlias = Literal["auto", "dir", "url"]
Access: TypeAlias = Literal["dir", "url"]

DIR: Final = "dir"
URL: Final = "url"


def check_mode(mode: str) -> None:
    if mode not in get_args(Mode):
        raise ProfileError(f"mode is {mode!r}; it is one of {', '.join(get_args(Mode))}")


def choose(mode: Mode, info: TableInfo, engine: str, schemes: frozenset[str]) -> Access:
    """Return the access by which an engine reads a table; ``schemes`` are the stores it can open itself."""
    hindrance = _hindrance(info, engine, schemes)
    if mode != URL and hindrance is None:
        return DIR
    if mode != DIR and URL in info.access_modes:
        return URL
    if mode == URL:
        raise NotUsable(f"table {info.name} is not shared as url; open it with mode='dir'")
    raise NotUsable(f"table {info.name} cannot be read as a directory: {hindrance}")


def _hindrance(info: TableInfo, engine: str, schemes: frozenset[str]) -> str | None:
    """Return why the engine cannot read the directory, or None when it can."""
    if DIR not in info.access_modes:
        return "it is shared as url only"
    if info.location is None:
        return "the gateway does not say where it lies"
    if scheme_of(info.location) not in schemes:
        return f"{engine} cannot open {scheme_of(info.location)}:// with a vended credential"
    if info.auxiliary_locations:
        return "a part of it lies in another place, and engines take one credential for a table"
    return None
