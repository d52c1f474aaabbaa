"""A gateway that shares tables that others wrote, and the official client before it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.commands.bearer import hash_of
from tests.deployments import all_in_one
from tests.e2e.official_client import OfficialClient

SHARE, SCHEMA = "written", "tables"


@dataclass(frozen=True, slots=True)
class Shared:
    profile: Path
    client: OfficialClient

    def ask(self, call: str, name: str, **options: object) -> Any:
        return self.client.call(call, f"{self.profile}#{SHARE}.{SCHEMA}.{name}", **options)


@contextmanager
def sharing(directory: Path, written: Path, tables: Sequence[dict[str, Any]]) -> Iterator[Shared]:
    """Share tables below the directory that they were ``written`` to, by their entries in the catalog."""
    token = secrets.token_urlsafe(32)
    client = OfficialClient("tests.oracles.client_frames")
    with all_in_one(directory, _settings(written, tables, token)) as deployment:
        profile = directory / "reader.share"
        profile.write_text(
            json.dumps({"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token})
        )
        yield Shared(profile, client)
    client.close()


def _settings(written: Path, tables: Sequence[dict[str, Any]], token: str) -> dict[str, Any]:
    return {
        "version": 1,
        "shares": [{"name": SHARE, "schemas": [{"name": SCHEMA, "tables": list(tables)}]}],
        "storages": [{"name": "written", "prefix": str(written), "vendor": "local"}],
        "recipients": [{"name": "reader", "tokens": [{"hash": hash_of(token)}], "shares": [SHARE]}],
        # The client reads files one after the other, as fast as it can.
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
    }
