"""Who is asking: a recipient, or a platform service."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gateway.domain.allowance import UNBOUNDED, Allowance

ALL_SHARES = "*"


class PrincipalKind(StrEnum):
    RECIPIENT = "recipient"
    SERVICE = "service"


class Permission(StrEnum):
    """What a platform service may do besides asking for itself."""

    # Present tokens and verified identities of recipients, as the edge does.
    EDGE = "edge"
    ACT_FOR_RECIPIENTS = "actForRecipients"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A recipient or a platform service, and the shares it is granted."""

    name: str
    kind: PrincipalKind
    # Folded names; ``ALL_SHARES`` alone grants every share.
    shares: frozenset[str]
    permissions: frozenset[Permission] = frozenset()
    # Of a platform service; recipients call none of the services themselves.
    allowance: Allowance = UNBOUNDED
    disabled: bool = False
    # Credentials from before this moment are not served again.
    revoked_at: datetime | None = None
    # What views know a recipient by, in the order of the names.
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def may_see(self, folded_share: str) -> bool:
        return ALL_SHARES in self.shares or folded_share in self.shares


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformService:
    """A platform service, and what it proves itself by: one of the two, or both together."""

    principal: Principal
    # A name of its client certificate.
    certificate: str = ""
    # PEM; each verifies its JWTs.
    public_keys: tuple[str, ...] = ()
