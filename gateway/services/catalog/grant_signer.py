"""Signs grants: the one place that holds the private half of the grant key."""

from __future__ import annotations

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.domain.grant import Grant
from gateway.ports import Clock
from gateway.rpc.grant import ALGORITHM, to_claims


class GrantSigner:
    """Turns grants into tokens that name the key they are signed with."""

    def __init__(self, key_id: str, private_key: Ed25519PrivateKey, clock: Clock) -> None:
        self._headers = {"kid": key_id}
        self._private_key = private_key
        self._clock = clock

    def sign(self, grant: Grant) -> str:
        claims = to_claims(grant, issued_at=self._clock())
        return jwt.encode(claims, self._private_key, algorithm=ALGORITHM, headers=self._headers)
