"""The name of a process among all that write to the same places."""

from __future__ import annotations

import re
import secrets
import socket


def replica_name() -> str:
    """Return a name for this process that no other has, or has had."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    return f"{host}-{secrets.token_hex(4)}"
