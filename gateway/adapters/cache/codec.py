"""Credentials as the bytes that are sealed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gateway.domain.credential import AwsTempCredentials, AzureUserDelegationSas, Credential, GcpOauthToken

_SECRETS: Final[Mapping[str, type[AwsTempCredentials | AzureUserDelegationSas | GcpOauthToken]]] = {
    "aws": AwsTempCredentials,
    "azure": AzureUserDelegationSas,
    "gcp": GcpOauthToken,
}
_KINDS: Final = {type_: kind for kind, type_ in _SECRETS.items()}


@dataclass(frozen=True, slots=True)
class Packed:
    """A credential, and the epochs in which it was asked for: of its storage, and of its recipient."""

    credential: Credential
    epochs: tuple[bytes, ...]


def pack(packed: Packed) -> bytes:
    credential = packed.credential
    content = {
        "id": credential.id,
        "kind": _KINDS[type(credential.secret)],
        "secret": asdict(credential.secret),
        "expires": credential.expires_at.astimezone(UTC).isoformat(),
        "epochs": [epoch.hex() for epoch in packed.epochs],
    }
    return json.dumps(content, separators=(",", ":")).encode()


def unpack(data: bytes) -> Packed | None:
    """Return what was packed, or None when another program packed it."""
    try:
        content: Any = json.loads(data)
        credential = Credential(
            id=content["id"],
            secret=_SECRETS[content["kind"]](**content["secret"]),
            expires_at=datetime.fromisoformat(content["expires"]),
        )
        epochs: Sequence[str] = content["epochs"]
        return Packed(credential, tuple(map(bytes.fromhex, epochs)))
    except (ValueError, KeyError, TypeError):
        return None
