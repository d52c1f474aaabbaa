"""Metrics that remember what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass
class FakeRpcMetrics:
    calls: list[tuple[str, str]] = field(default_factory=list)

    def observe_rpc(self, method: str, code: str, elapsed: timedelta) -> None:
        self.calls.append((method, code))
