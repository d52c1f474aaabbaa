"""A catalog's key pair, and grants that it signs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.domain.grant import Audience, Grant
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.rpc.grant import GrantVerifier
from gateway.services.catalog.grant_signer import GrantSigner

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)

GRANT = Grant(
    principal="acme",
    audience=Audience.PRESIGN,
    table=TableName("retail", "sales", "orders"),
    table_id="00000000-0000-0000-0000-000000000001",
    location=parse_location("s3://lake/sales/orders"),
    auxiliary_locations=(parse_location("s3://archive/orders"),),
    access_modes=(AccessMode.URL,),
    history_shared=True,
    generation="g1",
    expires_at=NOON + timedelta(seconds=60),
)


@dataclass
class Grants:
    """Signs grants at a moment that a test moves."""

    now: datetime = NOON
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    def clock(self) -> datetime:
        return self.now

    def sign(self, **changes: Any) -> str:
        return GrantSigner("k1", self.key, self.clock).sign(replace(GRANT, **changes))

    def verifier(self, audience: Audience) -> GrantVerifier:
        return GrantVerifier({"k1": self.key.public_key()}, audience, self.clock)
