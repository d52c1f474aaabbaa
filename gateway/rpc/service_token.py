"""JWTs by which platform services say who they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from gateway.domain.principal import PlatformService
from gateway.errors import Unauthenticated
from gateway.ports import Clock, ServiceDirectory

PublicKey = Ed25519PublicKey | RSAPublicKey | EllipticCurvePublicKey

MAX_AGE: Final = timedelta(hours=1)
_SKEW: Final = timedelta(seconds=5)
_MAX_LENGTH: Final = 16 * 1024
_MIN_RSA_BITS: Final = 2048
_MAX_KEYS: Final = 256
_MAX_TOKENS: Final = 1024
_REFUSALS: Final = (
    jwt.PyJWTError,
    UnsupportedAlgorithm,
    ArithmeticError,
    ValueError,
    TypeError,
    KeyError,
)


class ServiceTokens:
    """Finds the platform service that signed a token: its ``sub``, one of whose keys verifies it.

    A token is for one of our services, by the full name that gRPC calls it by. A list of several is refused:
    each of them could use it at the others.
    """

    def __init__(
        self,
        directory: ServiceDirectory,
        clock: Clock,
        *,
        max_keys: int = _MAX_KEYS,
        max_tokens: int = _MAX_TOKENS,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._max_keys = max_keys
        self._max_tokens = max_tokens
        self._keys: dict[str, PublicKey] = {}
        # Claims of tokens that were verified for an audience, with the key that did: callers send the same
        # one for minutes.
        self._verified_claims: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}

    async def identify(self, token: str, audience: str) -> PlatformService:
        """Return the service; raise ``Unauthenticated``, with the same words whatever is wrong."""
        try:
            return await self._verified(token, audience)
        except _REFUSALS as exc:
            raise Unauthenticated(
                "the service's token is not signed by a configured key of its subject for the audience "
                f"{audience!r} alone, or is expired or older than an hour"
            ) from exc

    async def _verified(self, token: str, audience: str) -> PlatformService:
        service = await self._directory.find_service_with_keys(_unverified_subject(token))
        if service is None:
            raise ValueError("no such service, or none with a key")
        _check_times(self._claims(token, audience, service.public_keys), self._clock())
        return service

    def _claims(self, token: str, audience: str, pems: Sequence[str]) -> Mapping[str, Any]:
        verified_with, claims = self._verified_claims.get((audience, token), ("", {}))
        if verified_with not in pems:
            pem, claims = self._verify(token, audience, pems)
            if len(self._verified_claims) >= self._max_tokens:
                del self._verified_claims[next(iter(self._verified_claims))]
            self._verified_claims[audience, token] = pem, claims
        return claims

    def _verify(self, token: str, audience: str, pems: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        """Return the first key that verifies a token, and its claims: a rotation has several."""
        for pem in pems[:-1]:
            with suppress(*_REFUSALS):
                return pem, _verified_claims(token, self._key(pem), audience)
        return pems[-1], _verified_claims(token, self._key(pems[-1]), audience)

    def _key(self, pem: str) -> PublicKey:
        key = self._keys.get(pem)
        if key is None:
            if len(self._keys) >= self._max_keys:
                self._keys.clear()
            key = self._keys[pem] = _parse_key(pem)
        return key


def _parse_key(pem: str) -> PublicKey:
    key = load_pem_public_key(pem.encode())
    if isinstance(key, RSAPublicKey) and key.key_size < _MIN_RSA_BITS:
        raise ValueError("an RSA key has at least 2048 bits")
    if not isinstance(key, PublicKey):
        raise TypeError("not an Ed25519, RSA or EC key")
    return key


def _algorithm(key: PublicKey) -> str:
    # By the key, never by the token's header: a public key must not be taken for an HMAC secret.
    if isinstance(key, Ed25519PublicKey):
        return "EdDSA"
    if isinstance(key, RSAPublicKey):
        return "RS256"
    if isinstance(key.curve, SECP256R1):
        return "ES256"
    raise ValueError("an EC key is on P-256")


def _unverified_subject(token: str) -> str:
    if len(token) > _MAX_LENGTH:
        raise ValueError("longer than any token")
    subject = jwt.decode(token, options={"verify_signature": False})["sub"]
    if not isinstance(subject, str):
        raise TypeError("not a text")
    return subject


def _verified_claims(token: str, key: PublicKey, audience: str) -> Mapping[str, Any]:
    claims = jwt.decode(
        token,
        key,
        algorithms=[_algorithm(key)],
        audience=audience,
        # Times are checked by the injected clock.
        options={
            "require": ["sub", "aud", "iat", "exp"],
            "verify_exp": False,
            "verify_iat": False,
            "verify_nbf": False,
        },
    )
    if claims["aud"] not in (audience, [audience]):
        raise ValueError("for several audiences")
    return claims


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    at = now.timestamp()
    issued_at, expires_at = _seconds(claims["iat"]), _seconds(claims["exp"])
    starts_at = max(issued_at, _seconds(claims.get("nbf", issued_at)))
    if not starts_at - _SKEW.total_seconds() <= at < expires_at:
        raise ValueError("expired, or not valid yet")
    if at - issued_at > MAX_AGE.total_seconds():
        raise ValueError("too old")


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("not a time")
    return value
