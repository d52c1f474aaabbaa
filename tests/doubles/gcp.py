"""A double of Google Cloud before fake-gcs-server: it verifies tokens, their boundaries, and signed URLs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from aiohttp import ClientSession, DummyCookieJar, web
from yarl import URL

from tests.doubles.gcp_identity import GoogleIdentity, Refused, ServiceAccount
from tests.doubles.gcp_requests import NotUnderstood, StorageRequest, parse_request
from tests.doubles.gcp_sign_blob import BlobService
from tests.doubles.gcp_signed_url import BadUrl, is_signed, mismatch, read_signed_url
from tests.doubles.server import Clock, check_backend, serving
from tests.stores.fake_gcs import FakeGcs

_SESSION = web.AppKey("session", ClientSession)
_NOT_PASSED = frozenset(
    {"host", "authorization", "connection", "transfer-encoding", "content-length", "accept-encoding"}
)
_NOT_RETURNED = frozenset({"connection", "transfer-encoding", "content-length", "content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was answered, for tests that count."""

    method: str
    path: str
    status: int


@dataclass(kw_only=True)
class GoogleCloud:
    """Cloud Storage and the services that give out tokens, at one address."""

    storage: FakeGcs
    clock: Clock
    identity: GoogleIdentity
    blobs: BlobService
    origin: str = ""
    decisions: list[Decision] = field(default_factory=list)
    # By their access IDs: the secrets, and the addresses of the accounts.
    hmac_keys: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False)

    @property
    def sts_url(self) -> str:
        return f"{self.origin}/v1/token"

    def iam_url(self, email: str) -> str:
        return f"{self.origin}/v1/projects/-/serviceAccounts/{email}:generateAccessToken"

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.cleanup_ctx.append(_with_session)
        self.identity.add_routes(app)
        self.blobs.add_routes(app)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        target = urlsplit(request.raw_path)
        is_xml = not target.path.startswith(("/storage/", "/download/", "/upload/"))
        try:
            response = await self._answer(request, target.path, target.query)
        except NotUnderstood as exc:
            response = _error(400, str(exc), is_xml=is_xml)
        except BadUrl as exc:
            response = _error(exc.status, str(exc), is_xml=True, code=exc.code)
        except Refused as exc:
            response = _error(exc.status, str(exc), is_xml=is_xml)
        self.decisions.append(Decision(method=request.method, path=request.raw_path, status=response.status))
        return response

    async def _answer(self, request: web.Request, path: str, query: str) -> web.Response:
        body = await request.read()
        if is_signed(query):
            return await self._answer_signed(request, path, query, body)
        token = self.identity.find(request.headers.get("Authorization"))
        asked = parse_request(request.method, path, query, request.headers.get("Content-Type", ""), body)
        for access in asked.accesses:
            if not token.may(access):
                raise Refused(
                    "forbidden", f"{token.account.email} does not have {access.permission} access", 403
                )
        if asked.is_folder:
            raise Refused("notFound", "no such folder", 404)
        if asked.is_listing and asked.is_xml:
            return await self._xml_listing(request, asked)
        return await self._forward(request, asked, path, body)

    async def _answer_signed(self, request: web.Request, path: str, query: str, body: bytes) -> web.Response:
        """Answer whoever has a signed URL, which works in the XML API only, and without a token."""
        if "Authorization" in request.headers:
            raise NotUnderstood("a signed URL, and a token too")
        account = self._signer(request, path, query)
        asked = parse_request(request.method, path, "", "", body)
        for access in asked.accesses:
            if not asked.is_xml or not account.may(access):
                raise Refused("forbidden", f"{account.email} does not have {access.permission} access", 403)
        return await self._forward(request, asked, path, body)

    def _signer(self, request: web.Request, path: str, query: str) -> ServiceAccount:
        """Return the account that signed a URL, or refuse the URL."""
        signed = read_signed_url(request.method, path, query, request.headers)
        signed.check_time(self.clock())
        if signed.signer in self.hmac_keys:
            secret, email = self.hmac_keys[signed.signer]
            signed.check_secret(secret)
            return self._account(email)
        account = self._account(signed.signer)
        if not any(
            signed.is_by(key) for key in (account.key.public_key(), *self.blobs.keys_of(account.email))
        ):
            raise mismatch()
        return account

    def _account(self, email: str) -> ServiceAccount:
        account = self.identity.account(email)
        if account is None:
            raise BadUrl("AccessDenied", "the signer is unknown", 403)
        return account

    async def _forward(
        self, request: web.Request, asked: StorageRequest, path: str, body: bytes
    ) -> web.Response:
        method, query = request.method, asked.query
        if asked.is_xml and asked.key is not None:
            # One place behind for both APIs, so that a name is read in one way.
            name = quote(asked.key, safe="")
            path = f"/storage/v1/b/{asked.bucket}/o/{name}"
            query = {"alt": "media"} if method in ("GET", "HEAD") else {}
            if method == "PUT":
                method, path = "POST", f"/upload/storage/v1/b/{asked.bucket}/o"
                query = {"uploadType": "media", "name": asked.key}
        url = URL(f"{self.storage.endpoint}{path}?{urlencode(query, quote_via=quote)}", encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED}
        async with request.app[_SESSION].request(method, url, headers=headers, data=body or None) as answer:
            content = await answer.read()
            check_backend(answer.status, content)
            kept = {
                name: value for name, value in answer.headers.items() if name.lower() not in _NOT_RETURNED
            }
            if method == "HEAD":
                kept["Content-Length"] = answer.headers.get("Content-Length", "0")
                return web.Response(status=answer.status, headers=kept)
            return web.Response(status=answer.status, headers=kept, body=content)

    async def _xml_listing(self, request: web.Request, asked: StorageRequest) -> web.Response:
        names = {"prefix": "prefix", "delimiter": "delimiter", "start-after": "startOffset"}
        query = {names[name]: value for name, value in asked.query.items() if name in names}
        url = URL(f"{self.storage.endpoint}/storage/v1/b/{asked.bucket}/o?{urlencode(query)}", encoded=True)
        async with request.app[_SESSION].get(url) as answer:
            if answer.status != 200:
                return _error(answer.status, "the listing failed", is_xml=True)
            return web.Response(body=_to_xml(asked, await answer.json()), content_type="application/xml")


@contextmanager
def running_gcp(storage: FakeGcs) -> Iterator[GoogleCloud]:
    clock = Clock()
    identity = GoogleIdentity(clock)
    blobs = BlobService(clock=clock, identity=identity)
    cloud = GoogleCloud(storage=storage, clock=clock, identity=identity, blobs=blobs)
    with serving(cloud.app()) as origin:
        cloud.origin = cloud.identity.origin = origin
        yield cloud


async def _with_session(app: web.Application) -> AsyncIterator[None]:
    async with ClientSession(cookie_jar=DummyCookieJar(), auto_decompress=False) as session:
        app[_SESSION] = session
        yield


def _to_xml(asked: StorageRequest, listed: dict[str, list[dict[str, str]]]) -> bytes:
    root = ET.Element("ListBucketResult")
    ET.SubElement(root, "Name").text = asked.bucket
    ET.SubElement(root, "Prefix").text = asked.query.get("prefix", "")
    ET.SubElement(root, "IsTruncated").text = "false"
    for item in listed.get("items", ()):
        if item["name"] == asked.query.get("start-after"):
            continue
        entry = ET.SubElement(root, "Contents")
        for tag, value in (("Key", "name"), ("Size", "size"), ("LastModified", "updated"), ("ETag", "etag")):
            ET.SubElement(entry, tag).text = str(item.get(value, ""))
    for prefix in listed.get("prefixes", ()):
        ET.SubElement(ET.SubElement(root, "CommonPrefixes"), "Prefix").text = str(prefix)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _error(status: int, message: str, *, is_xml: bool, code: str = "") -> web.Response:
    if is_xml:
        root = ET.Element("Error")
        codes = {400: "InvalidArgument", 401: "AuthenticationRequired", 403: "AccessDenied", 404: "NoSuchKey"}
        ET.SubElement(root, "Code").text = code or codes.get(status, "InternalError")
        ET.SubElement(root, "Message").text = message
        return web.Response(status=status, body=ET.tostring(root), content_type="application/xml")
    reasons = {400: "invalid", 401: "authError", 403: "forbidden", 404: "notFound"}
    error = {
        "code": status,
        "message": message,
        "errors": [{"reason": reasons.get(status, "error"), "message": message}],
    }
    return web.Response(status=status, text=json.dumps({"error": error}), content_type="application/json")
