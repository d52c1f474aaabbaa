"""A double of Microsoft's login: tokens for client secrets, federated tokens and managed identities.

From "OAuth 2.0 client credentials flow" and "access token claims" of the Microsoft identity platform.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.config.schema import TlsConfig
from tests.doubles.rsa_keys import pooled_rsa_key
from tests.doubles.server import Clock, Faults, serving

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FEDERATED_AUDIENCE = "api://AzureADTokenExchange"
_LIFE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An application in the tenant, and what its role assignments let it do with the storage account."""

    client_id: str = field(default_factory=lambda: str(uuid4()))
    object_id: str = field(default_factory=lambda: str(uuid4()))
    secret: str | None = field(default=None, repr=False)
    # The subject of the tokens of another issuer that stand for it.
    federated_subject: str | None = None
    # Storage Blob Delegator, Data Reader and Data Contributor.
    may_delegate: bool = True
    may_read: bool = True
    may_write: bool = False


class FederatedIssuer:
    """Another identity provider, such as a Kubernetes cluster, whose tokens the tenant trusts."""

    def __init__(self, issuer: str = "https://cluster.test/issuer") -> None:
        self.issuer = issuer
        self._key = pooled_rsa_key()

    @property
    def public_key(self) -> rsa.RSAPublicKey:
        return self._key.public_key()

    def token(self, subject: str, now: datetime, audience: str = FEDERATED_AUDIENCE) -> str:
        claims = {"iss": self.issuer, "sub": subject, "aud": audience, "iat": now, "exp": now + _LIFE}
        return jwt.encode(claims, self._key, algorithm="RS256")


class Refused(Exception):
    """A request for a token that gets none."""

    def __init__(self, error: str, status: int = 400) -> None:
        super().__init__(error)
        self.error = error
        self.status = status


class MicrosoftLogin:
    """The login endpoint of one tenant, and the managed identity endpoint of one machine in it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.tenant = str(uuid4())
        self.issuer = f"https://sts.windows.net/{self.tenant}/"
        self.federation = FederatedIssuer()
        self.identity_header = secrets.token_hex(16)
        self.managed_identity: Principal | None = None
        self.faults = Faults()
        self.issued = 0
        self.origin = ""
        self.life = _LIFE
        self._key = pooled_rsa_key()
        self._principals: dict[str, Principal] = {}

    def register(self, principal: Principal) -> Principal:
        self._principals[principal.client_id] = principal
        return principal

    def forget(self, principal: Principal) -> None:
        """Delete an application: its tokens and what was delegated by it end."""
        del self._principals[principal.client_id]

    def find(self, object_id: str) -> Principal | None:
        return next((each for each in self._principals.values() if each.object_id == object_id), None)

    def bearer(self, token: str, audiences: frozenset[str]) -> Principal:
        """Return who a token stands for, if it was issued here for one of these audiences and still lives."""
        options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
        try:
            claims = jwt.decode(token, self._key.public_key(), ["RS256"], options=options, issuer=self.issuer)
        except jwt.InvalidTokenError:
            raise Refused("invalid_token", 401) from None
        now = self.clock().timestamp()
        principal = self._principals.get(claims["appid"])
        if not claims["nbf"] <= now < claims["exp"] or claims["aud"] not in audiences or principal is None:
            raise Refused("invalid_token", 401)
        return principal

    def new_token(self, principal: Principal, audience: str) -> str:
        now = self.clock()
        self.issued += 1
        claims = {
            "iss": self.issuer,
            "aud": audience,
            "tid": self.tenant,
            "jti": str(uuid4()),
            "appid": principal.client_id,
            "oid": principal.object_id,
            "sub": principal.object_id,
            "iat": now,
            "nbf": now - timedelta(minutes=5),
            "exp": now + self.life,
        }
        return jwt.encode(claims, self._key, algorithm="RS256")

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(f"/{self.tenant}/v2.0/.well-known/openid-configuration", self._metadata)
        app.router.add_post(f"/{self.tenant}/oauth2/v2.0/token", self._token)
        app.router.add_get("/msi/token", self._managed)
        return app

    async def _metadata(self, request: web.Request) -> web.Response:
        place = f"{self.origin}/{self.tenant}/oauth2/v2.0"
        return web.json_response(
            {
                "issuer": f"{self.origin}/{self.tenant}/v2.0",
                "token_endpoint": f"{place}/token",
                "authorization_endpoint": f"{place}/authorize",
                "jwks_uri": f"{self.origin}/{self.tenant}/discovery/v2.0/keys",
            }
        )

    async def _token(self, request: web.Request) -> web.Response:
        if fault := self.faults.take():
            return fault
        form = await request.post()
        try:
            principal = self._authenticate({name: str(value) for name, value in form.items()})
        except Refused as exc:
            return web.json_response({"error": exc.error, "error_description": exc.error}, status=exc.status)
        audience = str(form["scope"]).removesuffix("/.default")
        return web.json_response(self._reply(principal, audience))

    async def _managed(self, request: web.Request) -> web.Response:
        if fault := self.faults.take():
            return fault
        given = request.headers.get("X-IDENTITY-HEADER", "")
        principal = self.managed_identity
        wanted = request.query.get("client_id")
        if principal is None or not secrets.compare_digest(given, self.identity_header):
            return web.json_response({"statusCode": 401, "message": "unauthorized"}, status=401)
        if request.query.get("api-version") != "2019-08-01" or wanted not in (None, principal.client_id):
            return web.json_response({"statusCode": 400, "message": "no such identity"}, status=400)
        reply = self._reply(principal, request.query["resource"])
        expires_on = str(int((self.clock() + self.life).timestamp()))
        return web.json_response(reply | {"expires_on": expires_on, "resource": request.query["resource"]})

    def _reply(self, principal: Principal, audience: str) -> dict[str, Any]:
        token = self.new_token(principal, audience)
        life = int(self.life.total_seconds())
        return {"token_type": "Bearer", "expires_in": life, "ext_expires_in": life, "access_token": token}

    def _authenticate(self, form: Mapping[str, str]) -> Principal:
        if form.get("grant_type") != "client_credentials":
            raise Refused("unsupported_grant_type")
        if not form.get("scope", "").endswith("/.default"):
            raise Refused("invalid_scope")
        principal = self._principals.get(form.get("client_id", ""))
        if principal is None:
            raise Refused("unauthorized_client")
        if "client_assertion" in form:
            self._check_assertion(principal, form)
        elif principal.secret is None or not secrets.compare_digest(
            form.get("client_secret", ""), principal.secret
        ):
            raise Refused("invalid_client", 401)
        return principal

    def _check_assertion(self, principal: Principal, form: Mapping[str, str]) -> None:
        if form.get("client_assertion_type") != ASSERTION_TYPE or principal.federated_subject is None:
            raise Refused("invalid_client", 401)
        try:
            claims = jwt.decode(
                form["client_assertion"],
                self.federation.public_key,
                algorithms=["RS256"],
                audience=FEDERATED_AUDIENCE,
                issuer=self.federation.issuer,
                options={"require": ["exp", "sub"]},
            )
        except jwt.InvalidTokenError:
            raise Refused("invalid_client", 401) from None
        if claims["sub"] != principal.federated_subject:
            raise Refused("invalid_client", 401)


@contextmanager
def running_login(clock: Clock, tls: TlsConfig | None) -> Iterator[MicrosoftLogin]:
    login = MicrosoftLogin(clock)
    with serving(login.app(), tls) as origin:
        login.origin = origin
        yield login
