"""The files beside a V2 checkpoint that hold its adds."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from gateway.domain import file_path
from gateway.domain.location import Location, parse_location
from gateway.domain.log import DIRECTORY, SIDECARS
from gateway.errors import GatewayError, InvalidArgument
from gateway.services.snapshot.log.beyond import beyond
from gateway.services.snapshot.log.bounds import MAX_SIDECARS
from gateway.services.snapshot.log.fault import damaged


def sidecar_names(checkpoint: str, paths: Sequence[str], table: Location) -> Sequence[str]:
    """Return the names, below the log's directory, of the files that a checkpoint refers to by URIs.

    Once each: a file that is named a thousand times would be read and held a thousand times.
    """
    names = tuple({sidecar_name(checkpoint, path, table): None for path in paths})
    if len(names) > MAX_SIDECARS:
        raise beyond(checkpoint, f"refers to more than {MAX_SIDECARS} sidecars")
    return names


def sidecar_name(checkpoint: str, path: str, table: Location) -> str:
    """Return the name, below the log's directory, of a file that a checkpoint refers to by a URI.

    A sidecar lies in one directory only, so that nothing but a file's name is followed: some writers have the
    directory stand before it, by its name in the log or by the whole URI, which must be the table's own.
    """
    directory, slash, last = path.rpartition("/")
    try:
        name = file_path.decode_path(last)
        is_relative = not slash or directory == SIDECARS
        is_here = is_relative or _decode(directory) == table.child(DIRECTORY).child(SIDECARS)
    except (InvalidArgument, UnicodeError) as exc:
        raise _elsewhere(checkpoint) from exc
    if not is_here or ":" in name:
        raise _elsewhere(checkpoint)
    return f"{SIDECARS}/{name}"


def _decode(directory: str) -> Location:
    text = unquote(directory, errors="strict")
    if text.count("/") != directory.count("/"):
        raise InvalidArgument("a directory does not plainly name one")
    return parse_location(text)


def _elsewhere(checkpoint: str) -> GatewayError:
    return damaged(checkpoint, f"refers to a sidecar outside of {SIDECARS}")
