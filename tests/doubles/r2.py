"""A double of Cloudflare R2 before SeaweedFS: it verifies temporary credentials, and its API makes some."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from aiohttp import ClientSession, DummyCookieJar, web
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from yarl import URL

from tests.doubles.r2_credentials import SCOPES, BadCredential, Grant, read_api_request, read_local_token
from tests.doubles.server import Clock, Faults, check_backend, serving
from tests.doubles.sigv4 import BadSignature, SignedRequest, read_signature
from tests.stores.s3 import Keys, S3Store

_SESSION = web.AppKey("session", ClientSession)
_REGIONS = frozenset({"auto", "us-east-1"})
_V2 = frozenset(
    {
        *("list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after"),
        *("encoding-type", "fetch-owner"),
    }
)
_V1 = frozenset({"prefix", "delimiter", "max-keys", "marker", "encoding-type"})
_ON_KEYS = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
_PASSED = (
    "content-type",
    "content-md5",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
)
_NOT_RETURNED = frozenset({"connection", "transfer-encoding", "content-length", "content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """An R2 API token: its value calls the API, its id and its value's hash sign S3 requests."""

    permission: str = "admin-read-write"
    buckets: tuple[str, ...] | None = None
    access_key_id: str = field(default_factory=lambda: secrets.token_hex(16))
    value: str = field(default_factory=lambda: secrets.token_urlsafe(30), repr=False)

    @property
    def secret_access_key(self) -> str:
        return hashlib.sha256(self.value.encode()).hexdigest()

    @property
    def keys(self) -> Keys:
        return Keys(access_key_id=self.access_key_id, secret_access_key=self.secret_access_key)

    def covers(self, bucket: str, actions: frozenset[str]) -> bool:
        return (self.buckets is None or bucket in self.buckets) and actions <= SCOPES[self.permission]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was answered, for tests that count."""

    action: str
    path: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Issued:
    """A credential that the API gave out; what its token means is the service's own affair."""

    parent_id: str
    grant: Grant
    secret: str = field(repr=False)


class _Denied(Exception):
    def __init__(self, code: str, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.code = code
        self.status = status


@dataclass(kw_only=True)
class R2:
    """The S3 endpoint of one account, and Cloudflare's API at the same address."""

    store: S3Store
    clock: Clock = field(default_factory=Clock)
    account: str = field(default_factory=lambda: secrets.token_hex(16))
    endpoint: str = ""
    faults: Faults = field(default_factory=Faults)
    decisions: list[Decision] = field(default_factory=list)
    issued_by_api: int = 0
    _tokens: dict[str, ApiToken] = field(default_factory=dict, repr=False)
    _issued: dict[tuple[str, str], _Issued] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        """The endpoint's host, which a locally signed token names as its audience."""
        return urlsplit(self.endpoint).netloc

    @property
    def api_url(self) -> str:
        return f"{self.endpoint}/client/v4"

    def register(self, token: ApiToken) -> ApiToken:
        self._tokens[token.access_key_id] = token
        return token

    def delete_token(self, token: ApiToken) -> None:
        """Delete a token: all that was derived from it ends at once."""
        del self._tokens[token.access_key_id]

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.cleanup_ctx.append(_with_session)
        app.router.add_post("/client/v4/accounts/{account}/r2/temp-access-credentials", self._create)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _create(self, request: web.Request) -> web.Response:
        if fault := self.faults.take():
            return fault
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        known = {token.value for token in self._tokens.values()}
        if kind != "Bearer" or value not in known or request.match_info["account"] != self.account:
            return _api_error(403, 10000, "Authentication error")
        try:
            parent_id, grant = read_api_request(await request.json(), self.clock())
        except (BadCredential, ValueError) as exc:
            return _api_error(400, 10001, str(exc))
        parent = self._tokens.get(parent_id)
        if parent is None or not parent.covers(grant.bucket, grant.actions):
            return _api_error(403, 10003, "the parent does not have what is asked for")
        return web.json_response(
            {"success": True, "errors": [], "messages": [], "result": self._issue(parent_id, grant)}
        )

    def _issue(self, parent_id: str, grant: Grant) -> dict[str, str]:
        key, secret, token = secrets.token_hex(16), secrets.token_hex(32), secrets.token_urlsafe(60)
        self._issued[key, token] = _Issued(parent_id=parent_id, grant=grant, secret=secret)
        self.issued_by_api += 1
        return {"accessKeyId": key, "secretAccessKey": secret, "sessionToken": token}

    async def _handle(self, request: web.Request) -> web.Response:
        target = urlsplit(request.raw_path)
        action = "unknown"
        try:
            body = await request.read()
            signed = read_signature(request.method, target.path, target.query, request.headers, body)
            grants = self._grants(signed)
            action, bucket, key, query = _action_of(signed)
            for each in _keys_of(body) if action == "DeleteObjects" else [key]:
                self._check(grants, action, bucket, each, query)
            place = f"{bucket}/{key}" if key else bucket
            response = await self._forward(request, place, query, body)
        except (BadSignature, _Denied) as exc:
            self.decisions.append(Decision(action=action, path=target.path, code=exc.code))
            return _error(exc.status, exc.code, str(exc))
        self.decisions.append(Decision(action=action, path=target.path, code="OK"))
        return response

    def _grants(self, signed: SignedRequest) -> tuple[ApiToken, Grant | None]:
        """Return the parent, and what a temporary credential narrows it to."""
        if signed.scope[1] not in _REGIONS:
            raise _Denied("Unauthorized", "R2's region is auto", 401)
        now = self.clock()
        issued = self._issued.get((signed.access_key_id, signed.session_token or ""))
        parent = self._tokens.get(issued.parent_id if issued else signed.access_key_id)
        if parent is None:
            raise _Denied("Unauthorized", "no such key, or its token was deleted", 401)
        if issued:
            if issued.grant.expires_at is None or issued.grant.expires_at <= now:
                raise _Denied("Unauthorized", "the credential is over", 401)
            signed.check(issued.secret, now)
            return parent, issued.grant
        if signed.session_token is None:
            signed.check(parent.secret_access_key, now)
            return parent, None
        try:
            local = read_local_token(
                signed.session_token,
                parent_id=parent.access_key_id,
                parent_secret=parent.secret_access_key,
                account=self.account,
                host=self.host,
                now=now,
            )
        except BadCredential as exc:
            raise _Denied("Unauthorized", str(exc), 401) from None
        signed.check(local.secret, now)
        return parent, local.grant

    def _check(
        self, grants: tuple[ApiToken, Grant | None], action: str, bucket: str, key: str, query: dict[str, str]
    ) -> None:
        parent, grant = grants
        # Never more than the parent has.
        allowed = parent.covers(bucket, frozenset({action}))
        if grant is not None and key:
            allowed = allowed and grant.allows_key(action, bucket, key)
        elif grant is not None and action.startswith("ListObjects"):
            allowed = allowed and grant.allows_listing(action, bucket, query.get("prefix", ""))
        elif grant is not None:
            # Of a bucket as a whole only when the whole bucket was granted.
            allowed = allowed and grant.prefixes is None and grant.allows_listing(action, bucket, "")
        if not allowed:
            raise _Denied("AccessDenied", f"{action} is not granted here")

    async def _forward(
        self, request: web.Request, path: str, query: dict[str, str], body: bytes
    ) -> web.Response:
        url = f"{self.store.endpoint}/{quote(path, safe='/-._~')}"
        if query:
            url = f"{url}?{urlencode(query, quote_via=quote)}"
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        signed = AWSRequest(method=request.method, url=url, headers=headers, data=body)
        keys = Credentials(self.store.admin.access_key_id, self.store.admin.secret_access_key)
        S3SigV4Auth(keys, "s3", self.store.region).add_auth(signed)
        async with request.app[_SESSION].request(
            request.method, URL(url, encoded=True), headers=dict(signed.headers), data=body or None
        ) as answer:
            content = await answer.read()
            check_backend(answer.status, content)
            kept = {
                name: value for name, value in answer.headers.items() if name.lower() not in _NOT_RETURNED
            }
            if request.method == "HEAD":
                kept["Content-Length"] = answer.headers.get("Content-Length", "0")
                return web.Response(status=answer.status, headers=kept)
            return web.Response(status=answer.status, headers=kept, body=content)


@contextmanager
def running_r2(store: S3Store) -> Iterator[R2]:
    service = R2(store=store)
    with serving(service.app()) as origin:
        service.endpoint = origin
        yield service


async def _with_session(app: web.Application) -> AsyncIterator[None]:
    async with ClientSession(cookie_jar=DummyCookieJar(), auto_decompress=False) as session:
        app[_SESSION] = session
        yield


def _action_of(signed: SignedRequest) -> tuple[str, str, str, dict[str, str]]:
    """Return the action, the bucket, the key and the parameters of the operation itself."""
    bucket, _, key = signed.path.removeprefix("/").partition("/")
    query = {name: value for name, value in signed.query if not name.startswith("X-Amz-")}
    # The SDKs name the operation in a parameter that means nothing.
    if query.get("x-id") == _ON_KEYS.get(signed.method):
        query.pop("x-id", None)
    if any(segment in ("", ".", "..") for segment in key.removesuffix("/").split("/")) and key:
        raise _Denied("InvalidObjectName", "what stands behind this double tidies such names up", 400)
    action: str | None = None
    if key and not query and "x-amz-copy-source" not in signed.headers:
        action = _ON_KEYS.get(signed.method)
    elif not key and signed.method == "GET":
        action = _bucket_action(query)
    elif not key and signed.method == "POST" and query == {"delete": ""}:
        action = "DeleteObjects"
    if not bucket or action is None:
        raise _Denied("AccessDenied", "an operation that is not understood here")
    return action, bucket, key, query


def _keys_of(body: bytes) -> list[str]:
    """Return the keys that a DeleteObjects names; one that is not granted refuses them all."""
    try:
        entries = [entry for entry in ET.fromstring(body) if not entry.tag.endswith("Quiet")]
        keys = [part.text or "" for entry in entries for part in entry if part.tag.endswith("Key")]
    except ET.ParseError:
        keys, entries = [], []
    if not keys or len(keys) != len(entries) or not all(keys):
        raise _Denied("MalformedXML", "not a list of keys", 400)
    return keys


def _bucket_action(query: dict[str, str]) -> str | None:
    if query.get("list-type") == "2" and set(query) <= _V2:
        return "ListObjectsV2"
    if set(query) <= _V1:
        return "ListObjectsV1"
    return "GetBucketLocation" if query == {"location": ""} else None


def _api_error(status: int, code: int, message: str) -> web.Response:
    errors: list[dict[str, Any]] = [{"code": code, "message": message}]
    return web.json_response(
        {"success": False, "errors": errors, "messages": [], "result": None}, status=status
    )


def _error(status: int, code: str, message: str) -> web.Response:
    root = ET.Element("Error")
    ET.SubElement(root, "Code").text = code
    ET.SubElement(root, "Message").text = message
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return web.Response(status=status, body=body, content_type="application/xml")
