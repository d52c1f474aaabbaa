"""What it takes to read a version, in bytes of the log, by what a listing says of its files."""

from __future__ import annotations

from typing import Final

from gateway.domain.log import LogFileKind, parse_log_name
from gateway.services.snapshot.log.listing import Checkpoint, LogListing

# A V2 checkpoint does not tell: most of it is in files that are listed elsewhere.
_UNKNOWN: Final = 64 * 1024 * 1024


def cost_of_version(listing: LogListing, version: int) -> int:
    """Return the bytes of the newest checkpoint of a version, and of the commits after it."""
    start = _newest_checkpoint(listing, -1, version)
    return cost_of_steps(listing, start, version) + _cost_of_checkpoint(listing, start)


def cost_of_steps(listing: LogListing, after: int, version: int) -> int:
    """Return the bytes of the commits that lead from one version to a later one."""
    return sum(file.size for step, file in listing.commits.items() if after < step <= version)


def are_steps_cheaper(listing: LogListing, after: int, version: int) -> bool:
    """Tell whether the commits after a known version are read sooner than a checkpoint on the way."""
    checkpoint = _newest_checkpoint(listing, after, version)
    left = _cost_of_checkpoint(listing, checkpoint)
    for step in range(after + 1, checkpoint + 1):
        commit = listing.commits.get(step)
        if commit is None or commit.size > left:
            return False
        left -= commit.size
    return True


def _newest_checkpoint(listing: LogListing, after: int, version: int) -> int:
    return max((known for known in listing.checkpoints if after < known <= version), default=-1)


def _cost_of_checkpoint(listing: LogListing, version: int) -> int:
    return min(map(_size, listing.checkpoints.get(version, ())), default=0)


def _size(checkpoint: Checkpoint) -> int:
    name = parse_log_name(checkpoint[0].name)
    if name is not None and name.kind is LogFileKind.V2_CHECKPOINT:
        return _UNKNOWN
    return sum(part.size for part in checkpoint)
