"""Bearer tokens of recipients, and the profile files that carry them."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_PREFIX: Final = "slc_"
_TOKEN_BYTES: Final = 32


def new_token() -> str:
    return f"{_PREFIX}{secrets.token_urlsafe(_TOKEN_BYTES)}"


def hash_of(token: str) -> str:
    """Return what a configuration holds instead of the token."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def profile_of(endpoint: str, token: str, expires_at: datetime | None) -> str:
    """Return the content of a profile file, in the version that every client reads."""
    profile = {"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": token}
    if expires_at is not None:
        profile["expirationTime"] = format_time(expires_at)
    return f"{json.dumps(profile, indent=2)}\n"


def write_private(file: Path, content: str, *, replace: bool) -> None:
    """Write a file that only its owner may read; raise ``FileExistsError`` unless it may be replaced."""
    # Replaced as a whole, so that the old file's mode and links do not apply to the new token.
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}") if replace else file
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
        draft.replace(file)
    except BaseException:
        # A draft holds the token, too, or a part of it.
        draft.unlink(missing_ok=True)
        raise


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
