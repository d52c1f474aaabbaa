"""A double of Google's tokens: service accounts, impersonation and the exchange for a downscoped token.

From "Using OAuth 2.0 for server to server applications", "generateAccessToken" and "Security Token Service".
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.doubles.gcp_boundary import ROLES, Access, BadBoundary, Boundary, parse_boundary
from tests.doubles.rsa_keys import pooled_rsa_key
from tests.doubles.server import Clock, Faults

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
_STORAGE_SCOPES = frozenset(
    {
        CLOUD_PLATFORM,
        "https://www.googleapis.com/auth/devstorage.read_only",
        "https://www.googleapis.com/auth/devstorage.read_write",
        "https://www.googleapis.com/auth/devstorage.full_control",
    }
)
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # a name, no secret
_GOOGLES_AUDIENCE = "https://oauth2.googleapis.com/token"
_LIFE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """An identity, the roles that it has on buckets, and whom it may impersonate."""

    email: str
    roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    may_impersonate: tuple[str, ...] = ()
    key: rsa.RSAPrivateKey = field(default_factory=pooled_rsa_key, repr=False)
    key_id: str = field(default_factory=lambda: secrets.token_hex(20))

    def may(self, access: Access) -> bool:
        return any(access.permission in ROLES[role] for role in self.roles.get(access.bucket, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    value: str = field(repr=False)
    account: ServiceAccount
    scopes: frozenset[str]
    expires_at: datetime
    boundary: Boundary | None = None

    def may(self, access: Access) -> bool:
        """Say whether the identity may, and the boundary, if there is one, lets it."""
        if not self.scopes & _STORAGE_SCOPES:
            return False
        return self.account.may(access) and (self.boundary is None or self.boundary.allows(access))


class Refused(Exception):
    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.error = error
        self.status = status


@dataclass
class GoogleIdentity:
    """The endpoints that give out tokens, and the tokens that they gave out."""

    clock: Clock
    origin: str = ""
    faults: Faults = field(default_factory=Faults)
    # Google leaves it out for some kinds of tokens.
    tells_expiry: bool = True
    exchanges: int = 0
    _accounts: dict[str, ServiceAccount] = field(default_factory=dict, repr=False)
    _tokens: dict[str, Token] = field(default_factory=dict, repr=False)

    def register(self, account: ServiceAccount) -> ServiceAccount:
        self._accounts[account.email] = account
        return account

    def account(self, email: str) -> ServiceAccount | None:
        return self._accounts.get(email)

    def key_file(self, account: ServiceAccount) -> dict[str, str]:
        """Return the content of a key file, whose addresses are this double's."""
        pem = account.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {
            "type": "service_account",
            "project_id": "test",
            "private_key_id": account.key_id,
            "private_key": pem.decode(),
            "client_email": account.email,
            "client_id": "1",
            "token_uri": f"{self.origin}/token",
        }

    def new_token(
        self,
        account: ServiceAccount,
        scopes: frozenset[str],
        life: timedelta = _LIFE,
        boundary: Boundary | None = None,
    ) -> Token:
        token = Token(
            value=f"ya29.{secrets.token_urlsafe(48)}",
            account=account,
            scopes=scopes,
            expires_at=self.clock() + life,
            boundary=boundary,
        )
        self._tokens[token.value] = token
        return token

    def find(self, authorization: str | None) -> Token:
        """Return the token of a request, or refuse it."""
        kind, _, value = (authorization or "").partition(" ")
        token = self._tokens.get(value)
        if kind != "Bearer" or token is None or token.expires_at <= self.clock():
            raise Refused("invalid_token", "Invalid Credentials", 401)
        if self._accounts.get(token.account.email) is not token.account:
            raise Refused("invalid_token", "the account is gone", 401)
        return token

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/token", self._answering(self._service_account))
        app.router.add_post("/v1/token", self._answering(self._exchange))
        app.router.add_post(
            "/v1/projects/-/serviceAccounts/{email}:generateAccessToken", self._answering(self._impersonate)
        )

    def _answering(self, handler: Any) -> Any:
        async def answer(request: web.Request) -> web.Response:
            if fault := self.faults.take():
                return fault
            try:
                reply = await handler(request)
            except Refused as exc:
                return web.json_response(
                    {"error": exc.error, "error_description": str(exc)}, status=exc.status
                )
            return web.json_response(reply)

        return answer

    async def _service_account(self, request: web.Request) -> dict[str, Any]:
        form = await _form(request, {"grant_type", "assertion"})
        if form["grant_type"] != _JWT_BEARER:
            raise Refused("unsupported_grant_type", "not a service account's assertion")
        account, claims = self._check_assertion(form["assertion"])
        token = self.new_token(account, frozenset(claims["scope"].split()))
        return {"access_token": token.value, "expires_in": int(_LIFE.total_seconds()), "token_type": "Bearer"}

    def _check_assertion(self, assertion: str) -> tuple[ServiceAccount, dict[str, Any]]:
        try:
            unverified = jwt.decode(assertion, options={"verify_signature": False})
            account = self._accounts[unverified["iss"]]
            claims: dict[str, Any] = jwt.decode(
                assertion,
                account.key.public_key(),
                algorithms=["RS256"],
                audience=[_GOOGLES_AUDIENCE, f"{self.origin}/token"],
                options={"require": ["iss", "scope", "aud", "exp", "iat"]},
            )
        except (jwt.InvalidTokenError, KeyError):
            raise Refused("invalid_grant", "Invalid JWT Signature.") from None
        if (
            claims["exp"] - claims["iat"] > _LIFE.total_seconds()
            or claims.get("sub", account.email) != account.email
        ):
            raise Refused("invalid_grant", "an assertion of more than an hour, or for somebody else")
        return account, claims

    async def _impersonate(self, request: web.Request) -> dict[str, Any]:
        caller = self.find(request.headers.get("Authorization"))
        body = await request.json()
        target = self._accounts.get(request.match_info["email"])
        if set(body) - {"scope", "lifetime", "delegates"} or body.get("delegates"):
            raise Refused("invalid_argument", "not understood here")
        if (
            caller.boundary is not None
            or target is None
            or target.email not in caller.account.may_impersonate
        ):
            raise Refused("permission_denied", "iam.serviceAccounts.getAccessToken is denied", 403)
        life = timedelta(seconds=float(body.get("lifetime", "3600s").removesuffix("s")))
        if not timedelta() < life <= _LIFE:
            raise Refused("invalid_argument", "a lifetime of more than an hour")
        token = self.new_token(target, frozenset(body["scope"]), life)
        return {"accessToken": token.value, "expireTime": token.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")}

    async def _exchange(self, request: web.Request) -> dict[str, Any]:
        form = await _form(
            request, {"grant_type", "subject_token", "subject_token_type", "requested_token_type", "options"}
        )
        types = (form["grant_type"], form["subject_token_type"], form["requested_token_type"])
        if types != (_EXCHANGE, _ACCESS_TOKEN, _ACCESS_TOKEN):
            raise Refused("invalid_request", "not an exchange of an access token for an access token")
        try:
            source = self.find(f"Bearer {form['subject_token']}")
            boundary = parse_boundary(form["options"])
        except Refused:
            raise Refused("invalid_grant", "the subject token does not hold") from None
        except BadBoundary as exc:
            raise Refused("invalid_request", str(exc)) from None
        if source.boundary is not None or CLOUD_PLATFORM not in source.scopes:
            raise Refused("invalid_request", "downscoped already, or without the scope of the whole platform")
        self.exchanges += 1
        remaining = source.expires_at - self.clock()
        token = self.new_token(source.account, source.scopes, remaining, boundary)
        reply = {"access_token": token.value, "issued_token_type": _ACCESS_TOKEN, "token_type": "Bearer"}
        return reply | ({"expires_in": int(remaining.total_seconds())} if self.tells_expiry else {})


async def _form(request: web.Request, names: set[str]) -> dict[str, str]:
    form = await request.post()
    if set(form) != names or len(form) != len(names):
        raise Refused("invalid_request", f"the form has other fields than {sorted(names)}")
    return {name: str(value) for name, value in form.items()}
