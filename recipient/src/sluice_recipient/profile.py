"""Profiles: where a gateway is, and the token that opens it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sluice_recipient.errors import ProfileError

_VERSION: Final = 1
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    # Without a slash at its end.
    endpoint: str
    bearer_token: str = field(repr=False)
    expires_at: datetime | None = None

    def check(self, now: datetime) -> None:
        """Raise ``ProfileError`` when its time is over: every request would be refused."""
        if self.expires_at is not None and self.expires_at <= now:
            raise ProfileError(f"the profile expired at {self.expires_at.isoformat()}; ask for a new one")

    def to_json(self) -> dict[str, Any]:
        """Return what a profile file holds."""
        content = {
            "shareCredentialsVersion": _VERSION,
            "endpoint": self.endpoint,
            "bearerToken": self.bearer_token,
        }
        return content | ({"expirationTime": self.expires_at.isoformat()} if self.expires_at else {})


def read_profile(path: Path) -> Profile:
    """Read a profile file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise ProfileError(f"cannot read the profile {path}: {reason}") from exc
    try:
        return parse_profile(_parse_json(text))
    except ProfileError as exc:
        raise ProfileError(f"the profile {path} cannot be used: {exc}") from exc


def parse_profile(content: Mapping[str, Any]) -> Profile:
    """Return the profile that a decoded profile file describes."""
    version = content.get("shareCredentialsVersion")
    if version != _VERSION or isinstance(version, bool):
        found = version if isinstance(version, int) else "missing"
        raise ProfileError(f"shareCredentialsVersion is {found}; only {_VERSION} is supported")
    return Profile(
        endpoint=_endpoint(content.get("endpoint")),
        bearer_token=_token(content.get("bearerToken")),
        expires_at=_expiration(content.get("expirationTime")),
    )


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # Not the parser's own message: it may quote what it read.
        raise ProfileError("it is not JSON") from None
    if not isinstance(content, dict):
        raise ProfileError("it is not a JSON object")
    return content


def _endpoint(value: object) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise ProfileError("endpoint is not the http or https address of a server")
    return parts.geturl().rstrip("/")


def _token(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ProfileError("it has no bearerToken; other ways to log in are not supported")
    if not _TOKEN.fullmatch(value):
        raise ProfileError("its bearerToken has characters that no header can carry")
    return value


def _expiration(value: object) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        expires_at = datetime.fromisoformat(str(value))
    except ValueError:
        raise ProfileError("its expirationTime is not a time such as 2030-01-31T00:00:00Z") from None
    return expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)
