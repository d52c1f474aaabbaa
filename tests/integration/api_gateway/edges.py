"""Real edges that can be stopped, killed and started again where they were."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.deployments import Deployment, Settings, all_in_one
from tests.ports import free_port
from tests.proxies.front import EdgeAddress


class Edges:
    """All in one process each, with the same keys, tables and recipients."""

    def __init__(self, directory: Path, settings: Sequence[Settings]) -> None:
        self.addresses = [EdgeAddress(port=free_port(), health_port=free_port()) for _ in settings]
        self._directory = directory
        self._settings = settings
        self._started: list[list[Deployment]] = [[] for _ in settings]
        self._stack = ExitStack()

    def start(self, number: int) -> None:
        """Start one, and wait until it is ready."""
        before = self._started[number]
        address = self.addresses[number]
        own = self._settings[number] | {
            "port": address.port,
            "metrics": {"listen": f"127.0.0.1:{address.health_port}"},
        }
        directory = self._directory / f"edge-{number}-{len(before)}"
        before.append(self._stack.enter_context(all_in_one(directory, own)))

    def stop(self, number: int) -> int:
        """Ask one to stop, as whoever rolls out another version does, and return its status."""
        return self._started[number][-1].edge.stop()

    def kill(self, number: int) -> None:
        self._started[number][-1].edge.stop(signal.SIGKILL)

    def close(self) -> None:
        self._stack.close()

    def events(self, number: int) -> list[dict[str, Any]]:
        """Return the audit events of one that runs."""
        audit = self._started[number][-1].directory / "edge" / "audit"
        return [
            json.loads(line)
            for segment in audit.glob("*.jsonl*")
            for line in segment.read_text().splitlines()
        ]
