"""What a client of the services does by itself: take turns, try again, give up in time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

DEFAULT_TIMEOUT: Final = timedelta(seconds=30)

_CATALOG: Final = "gateway.v1.Catalog"
_SNAPSHOT: Final = "gateway.v1.Snapshot"
_PRESIGN: Final = "gateway.v1.Presign"
_VENDING: Final = "gateway.v1.Vending"
# Every call reads, so every call may be tried again: what a lost first attempt has done does no harm. A
# stream is tried again only before its first message. Nothing else is: another status is an answer.
_RETRY_POLICY: Final = {
    "maxAttempts": 3,
    "initialBackoff": "0.05s",
    "maxBackoff": "0.5s",
    "backoffMultiplier": 2,
    # The second: what reaches a server just when that has told its clients to go.
    "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
}
# Once a hundred calls have failed, one more attempt for ten that succeed: retries never double an outage.
_THROTTLING: Final = {"maxTokens": 200, "tokenRatio": 0.1}


def service_config(timeout: timedelta = DEFAULT_TIMEOUT, service: str = "") -> Mapping[str, Any]:
    """Return gRPC's service config; the timeout is that of calls whose caller sets none.

    With a service's name calls go only to replicas that say that it serves: one about to stop says no.
    """
    unary = [
        *({"service": service} for service in (_CATALOG, _PRESIGN, _VENDING)),
        *({"service": _SNAPSHOT, "method": method} for method in ("GetVersion", "GetMetadata")),
    ]
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {"name": unary, "timeout": f"{timeout.total_seconds():.3f}s", "retryPolicy": _RETRY_POLICY},
            # Streams, which take as long as their reader does, and health.
            {"name": [{}], "retryPolicy": _RETRY_POLICY},
        ],
        "retryThrottling": _THROTTLING,
        **({"healthCheckConfig": {"serviceName": service}} if service else {}),
    }


def service_config_json(timeout: timedelta = DEFAULT_TIMEOUT, service: str = "") -> str:
    return json.dumps(service_config(timeout, service), indent=2) + "\n"
