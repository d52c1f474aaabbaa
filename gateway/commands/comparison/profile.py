"""Profile files: where a sharing server is, and what opens it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

SUPPORTED_VERSION: Final = 1
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class ProfileError(Exception):
    """A profile that cannot be used, with what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    # Without a slash at its end.
    endpoint: str
    bearer_token: str = field(repr=False)


def read_profile(path: Path, now: datetime) -> Profile:
    """Read a profile file; raise ``ProfileError`` for one that a server would not accept either."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise ProfileError(f"cannot read the profile {path}: {reason}") from exc
    try:
        return parse_profile(text, now)
    except ProfileError as exc:
        raise ProfileError(f"the profile {path} cannot be used: {exc}") from exc


def parse_profile(text: str, now: datetime) -> Profile:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # Not the parser's own message: it may quote what it read.
        raise ProfileError("it is not JSON") from None
    if not isinstance(content, dict):
        raise ProfileError("it is not a JSON object")
    version = content.get("shareCredentialsVersion")
    if version != SUPPORTED_VERSION or isinstance(version, bool):
        found = version if isinstance(version, int) else "missing"
        raise ProfileError(f"shareCredentialsVersion is {found}; only {SUPPORTED_VERSION} is supported")
    _check_expiration(content.get("expirationTime"), now)
    return Profile(endpoint=_checked_endpoint(content.get("endpoint")), bearer_token=_checked_token(content))


def _checked_endpoint(value: object) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise ProfileError("endpoint is not the http or https address of a server")
    return parts.geturl().rstrip("/")


def _checked_token(content: dict[str, object]) -> str:
    token = content.get("bearerToken")
    if not isinstance(token, str) or not token:
        raise ProfileError("it has no bearerToken; other ways to log in are not supported")
    if not _TOKEN.fullmatch(token):
        raise ProfileError("its bearerToken has characters that no header can carry")
    return token


def _check_expiration(value: object, now: datetime) -> None:
    if value is None or value == "":
        return
    try:
        expires_at = datetime.fromisoformat(str(value))
    except ValueError:
        raise ProfileError("its expirationTime is not a time such as 2030-01-31T00:00:00Z") from None
    if expires_at.tzinfo is None:
        expires_at = expires_at.replace(tzinfo=UTC)
    if expires_at <= now:
        raise ProfileError(f"it expired at {value}; ask for a new one")
