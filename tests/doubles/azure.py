"""A double of an Azure storage account before Azurite: it gives out delegation keys and verifies their SAS.

From Microsoft's "Get User Delegation Key", "Create a user delegation SAS", "Create a service SAS" and
"Authorize with Microsoft Entra ID". Where they leave a doubt, as with a listing whose prefix ends at the
directory's name, it refuses.
"""

from __future__ import annotations

import base64
import ipaddress
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree as ET

from aiohttp import ClientSession, DummyCookieJar, web
from azure.storage.blob import BlobServiceClient

from tests.certificates import new_authority
from tests.doubles.azure_batch import Answer, Part, parse_batch, to_response
from tests.doubles.azure_keys import DelegationKeys, read_times, to_xml
from tests.doubles.azure_oauth import MicrosoftLogin, Principal, Refused, running_login
from tests.doubles.azure_operations import Operation, operation_of
from tests.doubles.azure_sas import (
    FIRST_VERSION,
    NEWEST_VERSION,
    PARAMETERS,
    AccessDenied,
    Sas,
    parse_sas,
)
from tests.doubles.azurite_backend import BlobRequest, send
from tests.doubles.path_list import to_path_list
from tests.doubles.server import Clock, Faults, check_backend, serving
from tests.stores.azurite import Azurite

_SESSION = web.AppKey("session", ClientSession)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the account answered, for tests that count."""

    operation: str
    path: str
    code: str


@dataclass(kw_only=True)
class StorageAccount:
    """A storage account; with a hierarchical namespace unless it is said to be flat."""

    azurite: Azurite
    login: MicrosoftLogin
    clock: Clock
    is_hierarchical: bool = True
    # The account's own key, and whether "Allow storage account key access" is on.
    own_key: bytes = field(default_factory=lambda: secrets.token_bytes(64), repr=False)
    allows_own_key: bool = True
    # For clients that cannot be given a certificate: plain requests count as if TLS had ended before us.
    assumes_https: bool = False
    origin: str = ""
    ca: Path | None = None
    faults: Faults = field(default_factory=Faults)
    decisions: list[Decision] = field(default_factory=list)
    keys_issued: int = 0
    _keys: DelegationKeys = field(default_factory=DelegationKeys, repr=False)

    @property
    def name(self) -> str:
        return self.azurite.account

    @property
    def endpoint(self) -> str:
        """The address of the account, which is the first segment of every path, as with Azurite."""
        return f"{self.origin}/{self.name}"

    @property
    def audiences(self) -> frozenset[str]:
        own = f"https://{self.name}.blob.core.windows.net"
        return frozenset({"https://storage.azure.com", "https://storage.azure.com/", own, f"{own}/"})

    def revoke_delegation_keys(self) -> None:
        """End all delegation keys, and with them every SAS, as the management API does."""
        self._keys.revoke()

    def make_container(self, name: str) -> None:
        with self._administrator() as service:
            if not service.get_container_client(name).exists():
                service.create_container(name)

    def put(self, container: str, path: str, body: bytes = b"content") -> None:
        with self._administrator() as service:
            service.get_blob_client(container, path).upload_blob(body, overwrite=True)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.cleanup_ctx.append(_with_session)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        # By the text of the request line: what a framework tidies up, the signature would not know.
        target = urlsplit(request.raw_path)
        operation: Operation | None = None
        try:
            path, query = self._parse(target.path, target.query)
            if query.get("comp") == "userdelegationkey":
                return await self._delegation_key(request, path, query)
            operation = operation_of(request.method, path, request.headers, query)
            self._authorize(request, operation, request.headers.get("Authorization"), query)
            if operation.is_batch:
                response = await self._batch(request, operation)
            else:
                response = await self._forward(request, operation, query)
        except AccessDenied as exc:
            self._note(operation, target.path, exc.code)
            return _error(exc)
        self._note(operation, target.path, "OK")
        return response

    def _parse(self, raw_path: str, raw_query: str) -> tuple[str, dict[str, str]]:
        path = unquote(raw_path, errors="strict")
        pairs = parse_qsl(raw_query, keep_blank_values=True, strict_parsing=bool(raw_query), errors="strict")
        query = dict(pairs)
        if len(query) != len(pairs):
            raise AccessDenied("InvalidQueryParameterValue", "a parameter is there twice", 400)
        account, _, rest = path.removeprefix("/").partition("/")
        if account != self.name:
            raise AccessDenied("ResourceNotFound", "another account", 404)
        if any(segment in ("", ".", "..") for segment in rest.removesuffix("/").split("/")) and rest:
            raise AccessDenied("InvalidUri", "a path with empty segments, or with dots for segments", 400)
        return rest, query

    def _authorize(
        self, request: web.Request, operation: Operation, header: str | None, query: dict[str, str]
    ) -> None:
        if header is not None and "sig" in query:
            raise AccessDenied("InvalidAuthenticationInfo", "two ways of authorization at once", 400)
        if header is not None:
            self._check_role(self._bearer(header), operation)
        elif "sig" in query:
            self._check_sas(request, operation, {name: query[name] for name in PARAMETERS & set(query)})
        else:
            raise AccessDenied("NoAuthenticationInformation", "neither a token nor a SAS", 401)

    def _bearer(self, header: str) -> Principal:
        kind, _, token = header.partition(" ")
        if kind != "Bearer":
            raise AccessDenied("AuthenticationFailed", "not a bearer token")
        try:
            return self.login.bearer(token, self.audiences)
        except Refused:
            raise AccessDenied("InvalidAuthenticationInfo", "the token does not hold", 401) from None

    def _check_role(self, principal: Principal, operation: Operation) -> None:
        allowed = principal.may_write if operation.writes else principal.may_read
        if not allowed:
            raise AccessDenied(
                "AuthorizationPermissionMismatch", "no role assignment lets this principal do it"
            )

    def _check_sas(self, request: web.Request, operation: Operation, values: dict[str, str]) -> None:
        sas = parse_sas(values)
        if sas.resource == "d" and not self.is_hierarchical:
            raise AccessDenied("AuthenticationFailed", "a flat namespace has no directories")
        key = self._keys.find(sas.key_fields) if sas.is_delegated else None
        secret = base64.b64decode(key.value) if key else self._account_key()
        sas.check_signature(secret, self.name, self._signed_path(sas, operation))
        sas.check_times(self.clock())
        self._check_origin(request, values)
        _check_permissions(sas, operation)
        if key is None:
            # The account's own key may do everything.
            return
        principal = self.login.find(key.oid)
        if principal is None:
            raise AccessDenied("AuthenticationFailed", "the principal of the key is gone")
        # A SAS never opens more than its maker's own roles do.
        self._check_role(principal, operation)

    def _account_key(self) -> bytes:
        if not self.allows_own_key:
            raise AccessDenied("KeyBasedAuthenticationNotPermitted", "the account's keys are switched off")
        return self.own_key

    def _signed_path(self, sas: Sas, operation: Operation) -> str:
        if not operation.is_listing or sas.resource != "d":
            return sas.signed_path(operation.container, operation.path)
        # A listing belongs to the directory that it lists, and its prefix must reach past the name's end.
        directory = operation.listed_directory
        if directory is None:
            raise AccessDenied("AuthenticationFailed", "a listing that does not stay in a directory")
        return sas.signed_path(operation.container, directory)

    def _check_origin(self, request: web.Request, values: dict[str, str]) -> None:
        is_https = request.secure or self.assumes_https
        if values.get("spr") == "https" and not is_https:
            raise AccessDenied("AuthorizationProtocolMismatch", "the SAS wants https")
        if values.get("sip"):
            first, _, last = values["sip"].partition("-")
            address = ipaddress.ip_address(request.remote or "")
            if not ipaddress.ip_address(first) <= address <= ipaddress.ip_address(last or first):  # type: ignore[operator]
                raise AccessDenied("AuthorizationSourceIPMismatch", "the SAS wants another address")

    async def _delegation_key(self, request: web.Request, path: str, query: dict[str, str]) -> web.Response:
        if fault := self.faults.take():
            return fault
        wanted = {"restype": "service", "comp": "userdelegationkey"}
        timeout = {"timeout": query["timeout"]} if "timeout" in query else {}
        if request.method != "POST" or path or query != wanted | timeout:
            raise AccessDenied("InvalidQueryParameterValue", "not the form of Get User Delegation Key", 400)
        if not (request.secure or self.assumes_https):
            raise AccessDenied("AuthenticationFailed", "bearer tokens need https")
        principal = self._bearer(request.headers.get("Authorization", ""))
        if not principal.may_delegate:
            raise AccessDenied("AuthorizationPermissionMismatch", "generateUserDelegationKey is not allowed")
        times = read_times(await request.read(), self.clock())
        version = request.headers.get("x-ms-version", "")
        if not FIRST_VERSION <= version <= NEWEST_VERSION:
            raise AccessDenied("InvalidHeaderValue", "x-ms-version has no user delegation keys", 400)
        key = self._keys.issue(principal.object_id, self.login.tenant, times, version)
        self.keys_issued += 1
        self._note(None, "userdelegationkey", "OK")
        return web.Response(body=to_xml(key), content_type="application/xml")

    async def _batch(self, request: web.Request, batch: Operation) -> web.Response:
        parts = parse_batch(request.headers.get("Content-Type", ""), await request.read())
        return to_response([await self._batched(request, batch, part) for part in parts])

    async def _batched(self, request: web.Request, batch: Operation, part: Part) -> Answer:
        target = urlsplit(part.target)
        operation: Operation | None = None
        try:
            path, query = self._parse(target.path, target.query)
            operation = operation_of(part.method, path, part.headers, query)
            _check_container(operation, batch)
            self._authorize(request, operation, part.headers.get("authorization"), query)
            deletion = BlobRequest(method="DELETE", path=operation.target, query={}, headers={}, body=b"")
            status, _, body = await send(request.app[_SESSION], self.azurite, deletion)
            check_backend(status, body)
        except AccessDenied as exc:
            self._note(operation, target.path, exc.code)
            return Answer(number=part.number, status=exc.status, code=exc.code)
        self._note(operation, target.path, "OK")
        return Answer(number=part.number, status=status, code="BlobNotFound" if status == 404 else "")

    async def _forward(
        self, request: web.Request, operation: Operation, query: dict[str, str]
    ) -> web.Response:
        rest = {name: value for name, value in query.items() if name not in PARAMETERS}
        blob_request = BlobRequest(
            method=request.method,
            path=operation.target,
            query=operation.blob_query or rest,
            headers=request.headers,
            body=await request.read(),
        )
        status, headers, body = await send(request.app[_SESSION], self.azurite, blob_request)
        check_backend(status, body)
        if operation.is_path_list and status == 200:
            return to_path_list(body)
        length = headers.pop("Content-Length", "0")
        if request.method == "HEAD":
            # Its length is that of the blob, not of this answer.
            return web.Response(status=status, headers={**headers, "Content-Length": length})
        return web.Response(status=status, headers=headers, body=body)

    def _note(self, operation: Operation | None, path: str, code: str) -> None:
        name = operation.name if operation else "unknown"
        self.decisions.append(Decision(operation=name, path=path, code=code))

    def _administrator(self) -> BlobServiceClient:
        key = base64.b64encode(self.azurite.key).decode()
        return BlobServiceClient(self.azurite.endpoint, credential=key)


@contextmanager
def running_azure(
    directory: Path, azurite: Azurite, *, is_hierarchical: bool = True, tls: bool = True
) -> Iterator[StorageAccount]:
    """Run the account and the login of its tenant; without TLS, requests count as if they came by https."""
    certificate = new_authority(directory).issue("azure") if tls else None
    clock = Clock()
    with running_login(clock, certificate) as login:
        account = StorageAccount(
            azurite=azurite, login=login, clock=clock, is_hierarchical=is_hierarchical, assumes_https=not tls
        )
        account.ca = Path(certificate.ca) if certificate else None
        with serving(account.app(), certificate) as origin:
            account.origin = origin
            yield account


async def _with_session(app: web.Application) -> AsyncIterator[None]:
    async with ClientSession(cookie_jar=DummyCookieJar(), auto_decompress=False) as session:
        app[_SESSION] = session
        yield


def _check_permissions(sas: Sas, operation: Operation) -> None:
    if operation.is_listing and sas.resource == "b":
        raise AccessDenied("AuthorizationResourceTypeMismatch", "a SAS for a blob lists nothing")
    if not set(operation.permissions) & set(sas.permissions):
        raise AccessDenied("AuthorizationPermissionMismatch", f"sp has none of {operation.permissions}")


def _check_container(operation: Operation, batch: Operation) -> None:
    if operation.container != batch.container:
        raise AccessDenied("InvalidInput", "a part for another container", 400)


def _error(exc: AccessDenied) -> web.Response:
    root = ET.Element("Error")
    ET.SubElement(root, "Code").text = exc.code
    ET.SubElement(root, "Message").text = exc.reason
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return web.Response(
        status=exc.status, body=body, content_type="application/xml", headers={"x-ms-error-code": exc.code}
    )
