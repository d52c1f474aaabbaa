"""Temporary credentials of R2, from Cloudflare's "Temporary credentials" and its example of local signing."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt

LONGEST_SECONDS = 604_800
_READ = frozenset(
    {
        *("HeadObject", "GetObject", "GetBucketLocation", "ListObjectsV1", "ListObjectsV2"),
        *("ListMultipartUploads", "ListParts"),
    }
)
_WRITE = frozenset(
    {
        *("PutObject", "DeleteObject", "DeleteObjects", "CopyObject"),
        *("CreateMultipartUpload", "UploadPart", "UploadPartCopy", "AbortMultipartUpload"),
        "CompleteMultipartUpload",
    }
)
SCOPES = {
    "object-read-only": _READ,
    "object-read-write": _READ | _WRITE,
    "admin-read-only": _READ,
    "admin-read-write": _READ | _WRITE,
}
_CLAIMS = frozenset({"bucket", "scope", "actions", "paths", "sub", "iss", "aud", "iat", "exp"})
_OPTIONS: Any = {
    "require": sorted(_CLAIMS - {"scope", "actions", "paths"}),
    "verify_exp": False,
    "verify_iat": False,
}
_MARK = b"jwt/"
_CLOCK_SKEW = timedelta(minutes=1)


class BadCredential(Exception):
    """A credential, or a request for one, that R2 does not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a credential opens: actions on one bucket, in some of its paths when there are any."""

    bucket: str
    actions: frozenset[str]
    prefixes: tuple[str, ...] | None = None
    objects: tuple[str, ...] = ()
    expires_at: datetime | None = None

    def allows_key(self, action: str, bucket: str, key: str) -> bool:
        if bucket != self.bucket or action not in self.actions:
            return False
        return self.prefixes is None or key in self.objects or key.startswith(self.prefixes)

    def allows_listing(self, action: str, bucket: str, prefix: str) -> bool:
        if bucket != self.bucket or action not in self.actions:
            return False
        return self.prefixes is None or prefix.startswith(self.prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalToken:
    """A session token that was signed by whoever has the parent's secret."""

    grant: Grant
    secret: str = field(repr=False)


def read_local_token(
    session_token: str, *, parent_id: str, parent_secret: str, account: str, host: str, now: datetime
) -> LocalToken:
    """Return what a locally signed token opens, if all that it says holds."""
    try:
        decoded = base64.b64decode(session_token, validate=True)
        signed = decoded.removeprefix(_MARK).decode("ascii")
        claims = jwt.decode(
            signed,
            parent_secret,
            algorithms=["HS256"],
            audience=host,
            issuer=parent_id,
            # Times are held against this double's own clock.
            options=_OPTIONS,
        )
    except (binascii.Error, UnicodeDecodeError, jwt.InvalidTokenError) as exc:
        raise BadCredential(f"not a token of this parent: {type(exc).__name__}") from None
    if not decoded.startswith(_MARK) or claims["sub"] != account or set(claims) - _CLAIMS:
        raise BadCredential("not the form of a token, or of another account")
    expires_at = _check_times(claims, now)
    paths = claims.get("paths")
    return LocalToken(
        grant=Grant(
            bucket=_text(claims["bucket"]),
            actions=_actions(claims.get("scope"), claims.get("actions")),
            **_paths(paths, "prefixPaths", "objectPaths"),
            expires_at=expires_at,
        ),
        secret=hashlib.sha256(signed.encode()).hexdigest(),
    )


def read_api_request(body: Any, now: datetime) -> tuple[str, Grant]:
    """Return the parent's key and the grant that the body of a call of Cloudflare's API asks for."""
    required = {"bucket", "parentAccessKeyId", "permission", "ttlSeconds"}
    if not isinstance(body, dict) or not required <= set(body) <= required | {"prefixes", "objects"}:
        raise BadCredential("not the fields of the API")
    life = body["ttlSeconds"]
    if type(life) is not int or not 1 <= life <= LONGEST_SECONDS or body["permission"] not in SCOPES:
        raise BadCredential("ttlSeconds or permission has a value that the API does not take")
    given = {name: body[name] for name in ("prefixes", "objects") if name in body}
    grant = Grant(
        bucket=_text(body["bucket"]),
        actions=SCOPES[body["permission"]],
        **_paths(given or None, "prefixes", "objects"),
        expires_at=now + timedelta(seconds=life),
    )
    return _text(body["parentAccessKeyId"]), grant


def _check_times(claims: Mapping[str, Any], now: datetime) -> datetime:
    issued, expires = claims["iat"], claims["exp"]
    if type(issued) is not int or type(expires) is not int or not 0 < expires - issued <= LONGEST_SECONDS:
        raise BadCredential("not the times of a token of at most seven days")
    expires_at = datetime.fromtimestamp(expires, now.tzinfo)
    if expires_at <= now or datetime.fromtimestamp(issued, now.tzinfo) > now + _CLOCK_SKEW:
        raise BadCredential("a token that is over, or from the future")
    return expires_at


def _actions(scope: Any, actions: Any) -> frozenset[str]:
    if scope is None and actions is None:
        raise BadCredential("neither a scope nor actions")
    allowed = SCOPES["object-read-write"]
    if scope is not None:
        if scope not in SCOPES:
            raise BadCredential("an unknown scope")
        allowed = SCOPES[scope]
    if actions is not None:
        named = frozenset(_texts(actions))
        if not named or not named <= _READ | _WRITE:
            raise BadCredential("no actions, or unknown ones")
        # Actions narrow a scope, they never widen it.
        allowed &= named
    return allowed


def _paths(paths: Any, prefixes: str, objects: str) -> dict[str, Any]:
    if paths is None:
        return {}
    if not isinstance(paths, dict) or set(paths) - {prefixes, objects}:
        raise BadCredential("paths are of another form")
    found = tuple(_texts(paths.get(prefixes, []))), tuple(_texts(paths.get(objects, [])))
    # Two empty lists could mean everything or nothing, and an empty prefix is everything.
    if not any(found) or "" in found[0]:
        raise BadCredential("paths that restrict nothing")
    return {"prefixes": found[0], "objects": found[1]}


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list):
        raise BadCredential("not a list")
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadCredential("not a text")
    return value
