"""The recipients and platform services of a configuration, sorted into an index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

from gateway.adapters.catalog_index import PrincipalIndex, TokenEntry
from gateway.config.faults import Fault
from gateway.config.schema import AuthorizationConfig, Config, PrincipalConfig, RecipientConfig
from gateway.domain.allowance import Allowance
from gateway.domain.name import fold
from gateway.domain.principal import ALL_SHARES, PlatformService, Principal, PrincipalKind
from gateway.domain.rate import Rate

# The recipient of a file with a single token, and the one that stands for everybody.
BEARER: Final = "bearer"
ANONYMOUS: Final = "anonymous"

_HASH_PREFIX: Final = "sha256:"
# What a request without a token presents: nobody's, or everybody would be that recipient.
_EMPTY_SHA256: Final = hashlib.sha256(b"").digest()
_EVERYTHING: Final = frozenset({ALL_SHARES})


class PrincipalReader:
    """Reads principals, and keeps every fault that only shows when all of them stand side by side."""

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults
        self._names: dict[str, str] = {}
        self._recipients: dict[str, Principal] = {}
        self._tokens: dict[bytes, TokenEntry] = {}
        self._identities: dict[tuple[str, str], Principal] = {}
        self._services: dict[str, PlatformService] = {}
        self._certificates: dict[str, PlatformService] = {}

    def read(self, config: Config) -> PrincipalIndex:
        for number, recipient in enumerate(config.recipients):
            self._read_recipient(recipient, f"recipients[{number}]")
        if config.authorization is not None:
            self._read_authorization(config.authorization)
        for number, service in enumerate(config.principals):
            self._read_service(service, f"principals[{number}]")
        return PrincipalIndex(
            recipients=self._recipients,
            tokens=self._tokens,
            identities=self._identities,
            services=self._services,
            certificates=self._certificates,
            anonymous=self._read_anonymous() if config.allow_anonymous else None,
        )

    def _read_recipient(self, config: RecipientConfig, path: str) -> None:
        principal = Principal(
            name=config.name,
            kind=PrincipalKind.RECIPIENT,
            shares=_folded(config.shares),
            disabled=config.disabled,
            revoked_at=config.revoked_at,
            properties=tuple(sorted(config.properties.items())),
        )
        self._add_recipient(principal, path)
        for number, token in enumerate(config.tokens):
            sha256 = bytes.fromhex(token.hash.removeprefix(_HASH_PREFIX))
            entry = TokenEntry(sha256=sha256, principal=principal, expires_at=token.expires)
            self._add_token(entry, f"{path}.tokens[{number}]")
        for identity in config.identities:
            self._identities[identity.issuer, identity.subject] = principal

    def _read_authorization(self, config: AuthorizationConfig) -> None:
        path = "authorization.bearerToken"
        principal = Principal(name=BEARER, kind=PrincipalKind.RECIPIENT, shares=_EVERYTHING)
        sha256 = hashlib.sha256(config.bearer_token.get_secret_value().encode()).digest()
        self._add_recipient(principal, path)
        self._add_token(TokenEntry(sha256=sha256, principal=principal), path)

    def _read_anonymous(self) -> Principal:
        principal = Principal(name=ANONYMOUS, kind=PrincipalKind.RECIPIENT, shares=_EVERYTHING)
        self._add_recipient(principal, "allowAnonymous")
        return principal

    def _read_service(self, config: PrincipalConfig, path: str) -> None:
        principal = Principal(
            name=config.name,
            kind=PrincipalKind.SERVICE,
            shares=_folded(config.shares),
            permissions=frozenset(config.permissions),
            allowance=_allowance(config),
        )
        self._add_name(config.name, path)
        service = PlatformService(
            principal=principal, certificate=config.certificate, public_keys=config.public_keys
        )
        self._services[config.name] = service
        if config.certificate:
            self._certificates[config.certificate] = service

    def _add_recipient(self, principal: Principal, path: str) -> None:
        self._add_name(principal.name, path)
        self._recipients[principal.name] = principal

    def _add_name(self, name: str, path: str) -> None:
        # One name space: limits, audit events and grants know a principal by its name alone.
        first = self._names.setdefault(fold(name), path)
        if first != path:
            self._fault(path, f"is called {name!r}, as is {first}; each needs a name of its own")

    def _add_token(self, entry: TokenEntry, path: str) -> None:
        if entry.sha256 == _EMPTY_SHA256:
            self._fault(path, "is the empty token, which everybody has")
        if entry.sha256 in self._tokens:
            self._fault(path, "belongs to another recipient already")
        self._tokens[entry.sha256] = entry

    def _fault(self, path: str, message: str) -> None:
        self._faults.append(Fault(path=path, message=message))


def _allowance(config: PrincipalConfig) -> Allowance:
    rate = config.rate
    return Allowance(
        methods=None if config.methods is None else frozenset(config.methods),
        rate=None if rate is None else Rate(requests_per_second=rate.requests_per_second, burst=rate.burst),
        concurrent_calls=config.concurrent_calls,
    )


def _folded(shares: Iterable[str] | Literal["*"]) -> frozenset[str]:
    return _EVERYTHING if shares == ALL_SHARES else frozenset(fold(share) for share in shares)
