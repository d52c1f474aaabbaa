"""The files beside a V2 checkpoint that hold its adds."""

from __future__ import annotations

from gateway.domain import file_path
from gateway.domain.log import SIDECARS
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.log.actions import damaged


def sidecar_name(checkpoint: str, path: str) -> str:
    """Return the name, below the log's directory, of a file that a checkpoint refers to by a URI.

    A sidecar lies in one directory only, so that nothing but a file's name is followed.
    """
    try:
        name = file_path.decode_path(path)
    except InvalidArgument as exc:
        raise _elsewhere(checkpoint) from exc
    if "/" in name or ":" in name:
        raise _elsewhere(checkpoint)
    return f"{SIDECARS}/{name}"


def _elsewhere(checkpoint: str) -> Unsupported:
    return damaged(checkpoint, f"refers to a sidecar outside of {SIDECARS}")
