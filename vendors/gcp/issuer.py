"""Exchanges the gateway's own access token for one that opens a single directory."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from gateway.domain.credential import Credential, GcpOauthToken
from gateway.domain.scope import Scope
from gateway.errors import GatewayError, Unavailable, Unsupported
from gateway.ports import Clock
from vendors.gcp.boundary import access_boundary
from vendors.gcp.identity import Identity, SourceToken
from vendors.http import Call, Reply, Request

_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind
_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_OK: Final = 200
_BAD_REQUEST: Final = 400
_CODE: Final = re.compile(r"[a-z_]{1,40}")
# The longest life that an organisation can allow its access tokens.
_MOST_SECONDS: Final = 12 * 3600

log = logging.getLogger(__name__)


class GcpIssuer:
    """Google decides how long a token lives: as long as the token it was made from, an hour at most."""

    # The token names the service account, whoever asks.
    names_recipients = False

    def __init__(self, *, identity: Identity, call: Call, sts_url: str, clock: Clock) -> None:
        self._identity = identity
        self._call = call
        self._sts_url = sts_url
        self._clock = clock

    async def issue(self, scope: Scope) -> Credential:
        boundary = access_boundary(scope.location)
        source = await self._identity.token(scope.life)
        asked_at = self._clock()
        reply = await self._call(exchange_request(self._sts_url, source.value, boundary))
        if reply.status != _OK:
            raise _error(reply)
        fields = reply.fields()
        token = _token(fields, source)
        return Credential(
            id=hashlib.sha256(token.encode()).hexdigest()[:32],
            secret=GcpOauthToken(oauth_token=token),
            expires_at=_expiry(fields, source, asked_at),
        )


def exchange_request(url: str, token: str, boundary: Mapping[str, Any]) -> Request:
    """Return the token exchange that puts a boundary around a token."""
    form = {
        "grant_type": _GRANT,
        "requested_token_type": _ACCESS_TOKEN,
        "subject_token": token,
        "subject_token_type": _ACCESS_TOKEN,
        # Google wants this field encoded twice.
        "options": quote(json.dumps(boundary)),
    }
    return Request(method="POST", url=url, headers=_FORM, body=urlencode(form).encode())


def _token(fields: Mapping[str, object], source: SourceToken) -> str:
    token = fields.get("access_token")
    if not isinstance(token, str) or not token:
        raise _nonsense("the token exchange answered without a token")
    if token == source.value:
        # It has all the rights of the gateway.
        raise _nonsense("the token exchange gave back the token that it was to narrow")
    return token


def _expiry(fields: Mapping[str, object], source: SourceToken, asked_at: datetime) -> datetime:
    """Return when the token ends, in Google's words; it never outlives the one it was made from."""
    life = fields.get("expires_in")
    ends = [] if source.expires_at is None else [source.expires_at]
    if life is not None:
        if type(life) is not int or not 0 < life <= _MOST_SECONDS:
            raise _nonsense("the token exchange gave no sensible life")
        # Counted from before the call: the answer took time to come.
        ends.append(asked_at + timedelta(seconds=life))
    if not ends:
        raise _nonsense("neither the token exchange nor the identity says when the token ends")
    return min(ends)


def _nonsense(reason: str) -> Unavailable:
    log.error("no credential was issued: %s", reason)
    return Unavailable("the storage's provider gave no usable credential")


def _error(reply: Reply) -> GatewayError:
    fields = reply.fields()
    code = fields.get("error")
    known = code if isinstance(code, str) and _CODE.fullmatch(code) else "no code"
    log.warning("the token exchange was refused: %d %s", reply.status, known)
    if reply.is_throttling:
        return Unavailable("the storage's provider is busy; try again later", retry_after=reply.retry_after)
    if reply.status == _BAD_REQUEST and code == "invalid_request":
        return Unsupported("the storage's provider cannot restrict a credential to this location")
    return Unavailable("the storage's provider gives no credential at the moment")
