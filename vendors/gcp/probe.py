"""Tries what a token opens, through the JSON API of Google Cloud Storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from gateway.domain.credential import Credential, GcpOauthToken
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.errors import GatewayError, Unsupported
from vendors.gcp.identity import Identity
from vendors.http import Call, Reply, Request

_DENIED: Final = frozenset({"forbidden", "insufficientPermissions", "PERMISSION_DENIED"})
_WORD: Final = re.compile(r"[A-Za-z_]{1,40}")
_FORBIDDEN: Final = 403
_MISSING: Final = 404
_MOST_NAMES: Final = 1000


class GcpProbe:
    """Not through obstore, which lists whole directories only: a prefix without a slash must be tried too."""

    def __init__(self, *, identity: Identity, call: Call, storage_url: str) -> None:
        self._identity = identity
        self._call = call
        self._storage_url = storage_url

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        key = f"{at.path}/{path}" if at.path else path
        try:
            reply = await self._call(self._request(await self._token(credential), action, at, key))
        except GatewayError as exc:
            return Attempt(verdict=Verdict.FAILED, detail=exc.message)
        verdict, detail = _judge(reply)
        names = _names(reply, at) if action is Action.LIST and verdict is Verdict.ALLOWED else ()
        return Attempt(verdict=verdict, detail=detail, names=names)

    async def _token(self, credential: Credential | None) -> str:
        if credential is None:
            return (await self._identity.token()).value
        if not isinstance(credential.secret, GcpOauthToken):
            raise Unsupported("this storage's credentials are OAuth tokens")
        return credential.secret.oauth_token

    def _request(self, token: str, action: Action, at: Location, key: str) -> Request:
        bucket, name = quote(at.authority, safe=""), quote(key, safe="")
        objects = f"{self._storage_url}/storage/v1/b/{bucket}/o"
        headers = {"Authorization": f"Bearer {token}"}
        if action is Action.READ:
            return Request(method="GET", url=f"{objects}/{name}?alt=media", headers=headers)
        if action is Action.LIST:
            query = urlencode({"prefix": key, "maxResults": _MOST_NAMES, "fields": "items/name"})
            return Request(method="GET", url=f"{objects}?{query}", headers=headers)
        if action is Action.DELETE:
            return Request(method="DELETE", url=f"{objects}/{name}", headers=headers)
        url = f"{self._storage_url}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        headers["Content-Type"] = "application/octet-stream"
        return Request(method="POST", url=url, headers=headers, body=b"sluice")


def _judge(reply: Reply) -> tuple[Verdict, str]:
    if reply.status in range(200, 300):
        return Verdict.ALLOWED, str(reply.status)
    words = _words(reply.fields())
    detail = " ".join([str(reply.status), *words[:1]])
    # A 403 may also be a quota, or an account that was closed: that is no proof of a boundary.
    if reply.status == _FORBIDDEN and _DENIED.intersection(words):
        return Verdict.DENIED, detail
    return (Verdict.MISSING if reply.status == _MISSING else Verdict.FAILED), detail


def _words(fields: Mapping[str, object]) -> list[str]:
    error = fields.get("error")
    if not isinstance(error, dict):
        return []
    found = [*(item.get("reason") for item in _objects(error.get("errors"))), error.get("status")]
    return [word for word in found if isinstance(word, str) and _WORD.fullmatch(word)]


def _names(reply: Reply, at: Location) -> tuple[str, ...]:
    keys = [str(item.get("name", "")) for item in _objects(reply.fields().get("items"))]
    top = f"{at.path}/" if at.path else ""
    return tuple(sorted(key.removeprefix(top) for key in keys))


def _objects(found: object) -> list[Mapping[str, Any]]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
