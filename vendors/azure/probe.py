"""Tries what a SAS opens, by plain calls to the blob service."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote
from xml.etree.ElementTree import Element

from gateway.domain.credential import AzureUserDelegationSas, Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from gateway.errors import GatewayError
from vendors.azure.account import Account
from vendors.azure.delegation_key import API_VERSION, TokenSource
from vendors.azure.errors import error_code
from vendors.http import Call, Reply, Request
from vendors.xml import parse_xml

_MOST_PAGES: Final = 20
_METHODS: Final = {Action.READ: "GET", Action.WRITE: "PUT", Action.DELETE: "DELETE"}
_HEADERS: Final = {
    # A probe that is allowed to write, and should not be, must not replace anything.
    Action.WRITE: {"x-ms-blob-type": "BlockBlob", "if-none-match": "*"},
}
_BODIES: Final = {Action.WRITE: b"sluice"}
_DENIALS: Final = frozenset(
    {"AuthorizationFailure", "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"}
)
# Authorised, and then stopped by the state of the blob.
_STATE: Final = frozenset(
    {"BlobAlreadyExists", "ConditionNotMet", "DirectoryIsNotEmpty", "PathAlreadyExists"}
)
_GONE: Final = frozenset({"BlobNotFound", "PathNotFound", "ResourceNotFound"})
# Words by which Azure says that it is not the place but the time, or the key, that is wrong.
_UNTIMELY: Final = ("time frame", "expir", "signed start", "signed expiry", "revoked", "user delegation key")


class AzureProbe:
    """Speaks to the blob endpoint, where an account checks a directory's SAS as it does at the dfs one."""

    def __init__(self, account: Account, tokens: TokenSource, http: Call) -> None:
        self._account = account
        self._tokens = tokens
        self._call = http

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        account = replace(self._account, container=at.authority.partition("@")[0])
        key = f"{at.path}/{path}" if at.path else path
        try:
            if action is Action.LIST:
                return await self._list(credential, account, at, key)
            reply = await self._send(
                credential,
                Request(
                    method=_METHODS[action],
                    url=account.url(key),
                    headers=_HEADERS.get(action, {}),
                    body=_BODIES.get(action, b""),
                ),
            )
        except GatewayError as exc:
            return Attempt(verdict=Verdict.FAILED, detail=exc.message)
        return judge(reply, signed=credential is not None)

    async def _list(
        self, credential: Credential | None, account: Account, at: Location, prefix: str
    ) -> Attempt:
        names: list[str] = []
        marker = ""
        for _ in range(_MOST_PAGES):
            query = f"restype=container&comp=list&prefix={quote(prefix, safe='')}"
            if marker:
                query += f"&marker={quote(marker, safe='')}"
            request = Request(method="GET", url=f"{account.url()}?{query}")
            reply = await self._send(credential, request)
            attempt = judge(reply, signed=credential is not None)
            if attempt.verdict is not Verdict.ALLOWED:
                return attempt
            root = parse_xml(reply.body)
            names += [name.removeprefix(f"{at.path}/") for name in _files(root)]
            marker = root.findtext("NextMarker") or ""
            if not marker:
                break
        return Attempt(verdict=Verdict.ALLOWED, names=tuple(names))

    async def _send(self, credential: Credential | None, request: Request) -> Reply:
        url, headers = request.url, {"x-ms-version": API_VERSION, **request.headers}
        if credential is None:
            headers["authorization"] = f"Bearer {(await self._tokens.get()).value}"
        elif isinstance(credential.secret, AzureUserDelegationSas):
            url += f"{'&' if '?' in url else '?'}{credential.secret.sas_token}"
        return await self._call(replace(request, url=url, headers=headers))


def judge(reply: Reply, *, signed: bool) -> Attempt:
    """Return what an answer proves; ``signed`` says that it was a SAS that was tried."""
    code = error_code(reply)
    detail = " ".join(part for part in (str(reply.status), code) if part)
    if reply.status < 300 or code in _STATE:  # noqa: PLR2004 - the statuses of success
        return Attempt(verdict=Verdict.ALLOWED)
    if reply.status == 404:  # noqa: PLR2004 - not found
        missing = code in _GONE or not code
        return Attempt(verdict=Verdict.MISSING if missing else Verdict.FAILED, detail=detail)
    denied = reply.status == 403 and (  # noqa: PLR2004 - forbidden
        code in _DENIALS or (signed and code == "AuthenticationFailed" and not _is_untimely(reply))
    )
    return Attempt(verdict=Verdict.DENIED if denied else Verdict.FAILED, detail=detail)


def _is_untimely(reply: Reply) -> bool:
    """Tell a SAS that is not valid now from one that is not valid here.

    Azure signs the place that a request names and compares: outside its directory, a good SAS looks like a
    forged one. Only together with an attempt inside that was allowed does this prove a denial.
    """
    words = reply.body.decode("utf-8", "replace").lower()
    return any(word in words for word in _UNTIMELY)


def _files(root: Element) -> list[str]:
    blobs = root.findall("Blobs/Blob")
    return [_name(blob) for blob in blobs if blob.findtext("Properties/ResourceType") != "directory"]


def _name(blob: Element) -> str:
    name = blob.find("Name")
    if name is None or not name.text:
        return ""
    return unquote(name.text) if name.get("Encoded") == "true" else name.text
