"""Passes allowed requests on to Azurite, signed anew with the account's key ("Authorize with Shared Key")."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote, urlencode

from aiohttp import ClientSession
from yarl import URL

from tests.stores.azurite import Azurite

_STANDARD = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)
_NOT_PASSED = frozenset(
    {"host", "authorization", "connection", "accept-encoding", "transfer-encoding", "date"}
)
_NOT_RETURNED = frozenset({"connection", "keep-alive", "transfer-encoding", "content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRequest:
    """A request to the account; the path is decoded, and has no leading slash."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


async def send(
    session: ClientSession, azurite: Azurite, request: BlobRequest
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and content of Azurite's answer."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers = {name: value for name, value in headers.items() if name not in _NOT_PASSED}
    headers["x-ms-date"] = format_datetime(datetime.now(UTC), usegmt=True)
    headers.setdefault("x-ms-version", "2021-12-02")
    headers["content-length"] = str(len(request.body))
    path = f"/{azurite.account}/{quote(request.path)}"
    headers["authorization"] = f"SharedKey {azurite.account}:{_signature(azurite, request, path, headers)}"
    url = URL(f"{azurite.origin}{path}?{urlencode(request.query, quote_via=quote)}", encoded=True)
    async with session.request(
        request.method, url, headers=headers, data=request.body or None, skip_auto_headers=["Content-Type"]
    ) as answer:
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_RETURNED}
        return answer.status, kept, await answer.read()


def _signature(azurite: Azurite, request: BlobRequest, path: str, headers: Mapping[str, str]) -> str:
    standard = [headers.get(name, "") for name in _STANDARD]
    # An empty body is signed as no length at all.
    standard[_STANDARD.index("content-length")] = str(len(request.body)) if request.body else ""
    own = sorted((name, value.strip()) for name, value in headers.items() if name.startswith("x-ms-"))
    parameters = sorted((name.lower(), value) for name, value in request.query.items())
    # The emulator's path has the account in it, and the rule puts it before the path once more.
    resource = f"/{azurite.account}{path}" + "".join(f"\n{name}:{value}" for name, value in parameters)
    lines = [request.method, *standard, *(f"{name}:{value}" for name, value in own), resource]
    digest = hmac.new(azurite.key, "\n".join(lines).encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()
