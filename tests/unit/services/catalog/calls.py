"""A clock in hand, and the other end of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.rpc.local import LOCAL_PEER

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@dataclass
class FakeClock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@dataclass
class FakeContext:
    """What a servicer sees of a call: by default from this process."""

    remote: str = LOCAL_PEER
    certificate_names: Sequence[str] = ()
    metadata: dict[str, str] = field(default_factory=dict)

    def peer(self) -> str:
        return self.remote

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"x509_subject_alternative_name": [name.encode() for name in self.certificate_names]}

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.metadata.items())
