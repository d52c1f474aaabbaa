"""Issues temporary credentials of R2: signed here by the parent's secret, or by Cloudflare's API."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.errors import GatewayError, Unavailable, Unsupported
from gateway.ports import Clock
from vendors.http import Reply
from vendors.r2.api import CloudflareApi, error_codes
from vendors.r2.config import REGION, R2Options
from vendors.r2.identity import Identity, Parent

_SCOPE: Final = "object-read-only"
# Narrower than the scope, which would also show unfinished uploads.
_ACTIONS: Final = ("GetObject", "HeadObject", "ListObjectsV2")
_LONGEST: Final = timedelta(days=7)
# Cloudflare's clock may be behind ours, and a token from the future would not hold.
_EARLY: Final = timedelta(minutes=5)
_OK: Final = 200
_BAD_REQUEST: Final = 400
# Said of the token that was sent, with the status of a bad request.
_BAD_TOKEN: Final = frozenset({6003, 6111, 9106, 9109, 10000})

log = logging.getLogger(__name__)


class LocalIssuer:
    """Calls nobody: R2 believes what the parent's secret has signed, and ends it when that says so."""

    names_recipients = False

    def __init__(self, *, options: R2Options, identity: Identity, clock: Clock) -> None:
        self._options = options
        self._identity = identity
        self._clock = clock

    async def issue(self, scope: Scope) -> Credential:
        parent = await self._identity.parent()
        now = int(self._clock().timestamp())
        # Both ends count for the week that a token may live.
        expires_at = now + _seconds(min(scope.life, _LONGEST - _EARLY))
        claims = {
            **claims_for(scope.location),
            "sub": self._options.account_id,
            "iss": parent.access_key_id,
            "aud": urlsplit(self._options.endpoint_url).netloc,
            "iat": now - _seconds(_EARLY),
            "exp": expires_at,
        }
        token = jwt.encode(claims, parent.secret_access_key, algorithm="HS256")
        return _credential(
            self._options,
            AwsTempCredentials(
                access_key_id=parent.access_key_id,
                secret_access_key=hashlib.sha256(token.encode()).hexdigest(),
                session_token=base64.b64encode(f"jwt/{token}".encode()).decode(),
            ),
            datetime.fromtimestamp(expires_at, tz=UTC),
        )


class ApiIssuer:
    """Lets Cloudflare sign. Its answer names no end, which is the life that was asked for."""

    names_recipients = False

    def __init__(self, *, options: R2Options, identity: Identity, api: CloudflareApi, clock: Clock) -> None:
        self._options = options
        self._identity = identity
        self._api = api
        self._clock = clock

    async def issue(self, scope: Scope) -> Credential:
        parent = await self._identity.parent()
        life = _seconds(scope.life)
        body = {
            **body_for(scope.location),
            "parentAccessKeyId": parent.access_key_id,
            "ttlSeconds": life,
        }
        # Counted from before the call: Cloudflare may have begun to count at once.
        asked_at = self._clock().replace(microsecond=0)
        path = f"/accounts/{self._options.account_id}/r2/temp-access-credentials"
        reply = await self._api.send("POST", path, body)
        if reply.status != _OK:
            raise _error(reply)
        keys = _keys(reply.fields(), parent)
        return _credential(self._options, keys, asked_at + timedelta(seconds=life))


def claims_for(location: Location) -> dict[str, Any]:
    """Return the claims that limit a credential to reading and listing below a location."""
    claims: dict[str, Any] = {"bucket": location.authority, "scope": _SCOPE, "actions": list(_ACTIONS)}
    if not location.is_root:
        claims["paths"] = {"prefixPaths": [_prefix(location)], "objectPaths": [location.path]}
    return claims


def body_for(location: Location) -> dict[str, Any]:
    """Return the same limits in the words of the API, which knows no actions."""
    body: dict[str, Any] = {"bucket": location.authority, "permission": _SCOPE}
    if not location.is_root:
        body |= {"prefixes": [_prefix(location)], "objects": [location.path]}
    return body


def _prefix(location: Location) -> str:
    # With the slash, or the neighbours whose names begin alike would be open. The bare key is allowed as an
    # object beside it: file systems ask whether a directory is a file, and must hear that it is not there.
    return f"{location.path}/"


def _seconds(life: timedelta) -> int:
    return int(min(life, _LONGEST).total_seconds())


def _keys(fields: Mapping[str, object], parent: Parent) -> AwsTempCredentials:
    result = fields.get("result")
    found = result if fields.get("success") is True and isinstance(result, dict) else {}
    key, secret, session = (found.get(name) for name in ("accessKeyId", "secretAccessKey", "sessionToken"))
    texts = isinstance(key, str) and isinstance(secret, str) and isinstance(session, str)
    # Without a session token these would be keys of their own, without limits.
    if not texts or not (key and secret and session) or secret == parent.secret_access_key:
        log.error("no credential was issued: the answer of Cloudflare's API holds no temporary keys")
        raise Unavailable("the storage's provider gave no usable credential")
    return AwsTempCredentials(
        access_key_id=str(key), secret_access_key=str(secret), session_token=str(session)
    )


def _credential(options: R2Options, keys: AwsTempCredentials, expires_at: datetime) -> Credential:
    return Credential(
        # Its access key is the parent's, and the same for all.
        id=hashlib.sha256(keys.session_token.encode()).hexdigest()[:32],
        secret=replace(keys, region=REGION, endpoint=options.endpoint_url),
        expires_at=expires_at,
    )


def _error(reply: Reply) -> GatewayError:
    codes = error_codes(reply)
    log.warning("Cloudflare's API gave no temporary credential: %d, codes %s", reply.status, codes)
    if reply.is_throttling:
        return Unavailable("the storage's provider is busy; try again later", retry_after=reply.retry_after)
    if reply.status == _BAD_REQUEST and not _BAD_TOKEN.intersection(codes):
        return Unsupported("the storage's provider cannot restrict a credential to this location")
    return Unavailable("the storage's provider gives no credential at the moment")
