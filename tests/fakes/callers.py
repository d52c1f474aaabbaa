"""What admission counts, remembered; and platform services to admit."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.domain.allowance import UNBOUNDED, Allowance
from gateway.domain.principal import Principal, PrincipalKind


@dataclass
class FakeCallerMetrics:
    refused: list[tuple[str, str]] = field(default_factory=list)

    def count_refused_call(self, caller: str, reason: str) -> None:
        self.refused.append((caller, reason))


def service(name: str, allowance: Allowance = UNBOUNDED) -> Principal:
    return Principal(name=name, kind=PrincipalKind.SERVICE, shares=frozenset(), allowance=allowance)
