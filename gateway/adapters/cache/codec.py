"""Credentials as the bytes that are sealed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

from gateway.domain.credential import (
    AwsTempCredentials,
    AzureDelegationKey,
    AzureUserDelegationSas,
    Credential,
    GcpOauthToken,
)

_Secret = AwsTempCredentials | AzureUserDelegationSas | GcpOauthToken | AzureDelegationKey
_SECRETS: Final[Mapping[str, type[_Secret]]] = {
    "aws": AwsTempCredentials,
    "azure": AzureUserDelegationSas,
    "azureKey": AzureDelegationKey,
    "gcp": GcpOauthToken,
}
_KINDS: Final = {type_: kind for kind, type_ in _SECRETS.items()}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Packed(Generic[T]):
    """A value, and the epochs in which it was asked for: of its storage, and of its recipient."""

    value: T
    epochs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How values of one kind are written."""

    pack: Callable[[Packed[T]], bytes]
    # Returns None when another program packed it.
    unpack: Callable[[bytes], Packed[T] | None]
    # About how many bytes there are to pack.
    size: Callable[[T], int]


def pack(packed: Packed[Credential]) -> bytes:
    credential = packed.value
    content = {
        "id": credential.id,
        "kind": _KINDS[type(credential.secret)],
        "secret": asdict(credential.secret),
        "expires": credential.expires_at.astimezone(UTC).isoformat(),
        "epochs": [epoch.hex() for epoch in packed.epochs],
    }
    return json.dumps(content, separators=(",", ":")).encode()


def unpack(data: bytes) -> Packed[Credential] | None:
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


# Small enough to be packed anywhere.
CREDENTIALS: Final = Codec(pack, unpack, lambda _: 0)
