"""Grants between processes: JWTs that the catalog signs and the other services believe."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway.domain.grant import MAX_LIFE, Audience, Grant
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import GatewayError, Unauthenticated
from gateway.ports import Clock

ALGORITHM: Final = "EdDSA"
ISSUER: Final = "sluice/catalog"

# How far the catalog's clock may be ahead of ours.
_SKEW: Final = timedelta(seconds=5)
_MAX_LENGTH: Final = 64 * 1024
_MAX_REMEMBERED: Final = 4096
_REQUIRED: Final = ("iss", "aud", "sub", "iat", "exp")


class GrantVerifier:
    """Believes grants that the catalog signed for one service, and remembers those until they expire."""

    def __init__(
        self,
        public_keys: Mapping[str, Ed25519PublicKey],
        audience: Audience,
        clock: Clock,
        *,
        capacity: int = _MAX_REMEMBERED,
    ) -> None:
        self._public_keys = dict(public_keys)
        self._audience = audience
        self._clock = clock
        # How many grants are cached.
        self._capacity = capacity
        self._remembered: dict[str, Grant] = {}

    def verify(self, token: str) -> Grant:
        """Return what a token grants; raise ``Unauthenticated`` when it grants nothing here and now."""
        now = self._clock()
        grant = self._remembered.get(token) or self._verified(token, now)
        if now >= grant.expires_at:
            self._remembered.pop(token, None)
            raise Unauthenticated("the grant has expired; resolve the table again")
        self._remember(token, grant)
        return grant

    def _verified(self, token: str, now: datetime) -> Grant:
        try:
            claims = self._claims(token)
            _check_times(claims, now)
            return from_claims(claims)
        except (jwt.PyJWTError, GatewayError, ValueError, TypeError, KeyError, OverflowError) as exc:
            raise Unauthenticated("the grant is not valid for this service; resolve the table again") from exc

    def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > _MAX_LENGTH:
            raise ValueError("longer than any grant")
        key = self._public_keys[jwt.get_unverified_header(token)["kid"]]
        return jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            audience=self._audience.value,
            issuer=ISSUER,
            # Times are checked by the injected clock.
            options={
                "require": list(_REQUIRED),
                "strict_aud": True,
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )

    def _remember(self, token: str, grant: Grant) -> None:
        if token not in self._remembered and len(self._remembered) >= self._capacity:
            # The first in is the first to expire, or nearly.
            del self._remembered[next(iter(self._remembered))]
        self._remembered[token] = grant


def to_claims(grant: Grant, issued_at: datetime) -> dict[str, Any]:
    """Return a grant as the claims of a JWT, in whole seconds."""
    claims = {
        "iss": ISSUER,
        "aud": grant.audience.value,
        "sub": grant.principal,
        "act": grant.actor,
        "iat": int(issued_at.timestamp()),
        "exp": int(grant.expires_at.timestamp()),
        "tbl": [grant.table.share, grant.table.schema, grant.table.table],
        "tid": grant.table_id,
        "loc": grant.location.text,
        "aux": [location.text for location in grant.auxiliary_locations],
        "acc": [mode.value for mode in grant.access_modes],
        "hist": grant.history_shared,
        "start": grant.start_version,
        "fresh": grant.freshness // timedelta(milliseconds=1),
        "rev": None if grant.revoked_at is None else round(grant.revoked_at.timestamp() * 1000),
        "gen": grant.generation,
    }
    # Said where it holds only, so that services of an older version read all other grants.
    return claims | ({"only": True} if grant.holds_shown_only else {})


def from_claims(claims: Mapping[str, Any]) -> Grant:
    """Return the grant that claims spell; raise where one is missing or does not mean anything."""
    share, schema, table = _texts(claims, "tbl")
    return Grant(
        principal=_text(claims["sub"]),
        actor=_text(claims["act"]),
        audience=Audience(_text(claims["aud"])),
        table=TableName(share, schema, table),
        table_id=_text(claims["tid"]),
        location=parse_location(_text(claims["loc"])),
        auxiliary_locations=tuple(parse_location(text) for text in _texts(claims, "aux")),
        access_modes=tuple(AccessMode(text) for text in _texts(claims, "acc")),
        history_shared=_flag(claims["hist"]),
        start_version=_number(claims["start"]),
        holds_shown_only=_flag(claims.get("only", False)),
        freshness=timedelta(milliseconds=_number(claims["fresh"])),
        revoked_at=_moment(claims["rev"]),
        generation=_text(claims["gen"]),
        expires_at=datetime.fromtimestamp(_number(claims["exp"]), tz=UTC),
    )


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    issued_at, expires_at = _number(claims["iat"]), _number(claims["exp"])
    if expires_at - issued_at > MAX_LIFE.total_seconds():
        raise ValueError("lives longer than a grant may")
    if issued_at > (now + _SKEW).timestamp():
        raise ValueError("issued in the future")


def _moment(value: object) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(_number(value) / 1000, tz=UTC)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = claims[name]
    if not isinstance(value, list):
        raise TypeError("not a list")
    return [_text(item) for item in value]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("not a flag")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a number that a claim may have")
    return value
