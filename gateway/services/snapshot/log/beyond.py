"""What is more than is read of a log: a limit of ours, and no damage."""

from __future__ import annotations

from gateway.errors import GatewayError
from gateway.services.snapshot.log.fault import faulty


class Beyond(Exception):
    """A file goes beyond a limit, which the message names; it goes on where the file's name ends."""


def beyond(name: str, reason: str) -> GatewayError:
    """Return the error for a file of the log that may be in order."""
    return faulty(f"goes beyond what is read: {name} {reason}", file=name)
