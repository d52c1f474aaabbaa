"""A small OpenID Connect issuer, as a Kubernetes cluster is one: its tokens, and the key that proves them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from aiohttp import web
from jwt.algorithms import RSAAlgorithm

from tests.doubles.rsa_keys import foreign_rsa_key, pooled_rsa_key
from tests.doubles.server import serving

_LIFE = timedelta(hours=1)


class OidcIssuer:
    """One key for all tokens; whoever checks them finds it by discovery."""

    def __init__(self) -> None:
        self.origin = ""
        self.key_id = secrets.token_hex(8)
        self._key = pooled_rsa_key()

    @property
    def jwks_url(self) -> str:
        return f"{self.origin}/keys"

    def token(
        self, subject: str, audience: str, *, issued_at: datetime | None = None, forged: bool = False
    ) -> str:
        """Return a token of an hour; a forged one names the issuer's key and is signed by another."""
        now = issued_at or datetime.now(UTC)
        claims = {"iss": self.origin, "sub": subject, "aud": audience, "iat": now, "exp": now + _LIFE}
        key = foreign_rsa_key() if forged else self._key
        return jwt.encode(claims, key, algorithm="RS256", headers={"kid": self.key_id})

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._configuration)
        app.router.add_get("/keys", self._keys)
        return app

    async def _configuration(self, request: web.Request) -> web.Response:
        return web.json_response({"issuer": self.origin, "jwks_uri": self.jwks_url})

    async def _keys(self, request: web.Request) -> web.Response:
        key: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return web.json_response({"keys": [key | {"kid": self.key_id, "use": "sig", "alg": "RS256"}]})


@contextmanager
def running_oidc() -> Iterator[OidcIssuer]:
    issuer = OidcIssuer()
    with serving(issuer.app()) as origin:
        issuer.origin = origin
        yield issuer
