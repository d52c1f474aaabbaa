"""The gateway itself, sharing the recipients' tables by their directories."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.commands.bearer import hash_of
from tests.deployments import all_in_one
from tests.e2e.recipient_lake import BUCKET, LOCATIONS, SHARE
from tests.stores.s3 import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Tables that a server shares with one recipient."""

    profile: Path
    endpoint: str
    token: str

    def address(self, table: str) -> str:
        return f"{self.profile}#{table}"


@contextmanager
def sharing_gateway(directory: Path, *, store: str, role: str, keys: Keys) -> Iterator[Shared]:
    """Run the gateway in one process; it assumes the ``role`` of a SeaweedFS at ``store`` with ``keys``."""
    token = secrets.token_urlsafe(32)
    storage = {
        "name": "lake",
        "prefix": f"s3://{BUCKET}",
        "vendor": "s3",
        "options": {
            "profile": "seaweedfs",
            "endpoint": store,
            "acceptCaseVariants": True,
            "role": {"arn": role},
            "identity": {
                "kind": "keys",
                "accessKeyId": keys.access_key_id,
                "secretAccessKey": {"value": keys.secret_access_key},
            },
        },
    }
    settings = {
        "version": 1,
        "shares": [{"name": SHARE, "schemas": [{"name": "shop", "tables": _tables()}]}],
        "recipients": [{"name": "reader", "tokens": [{"hash": hash_of(token)}], "shares": [SHARE]}],
        "storages": [storage],
    }
    with all_in_one(directory, settings) as deployment:
        profile = directory / "reader.share"
        content = {"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token}
        profile.write_text(json.dumps(content))
        yield Shared(profile=profile, endpoint=deployment.base_url, token=token)


def _tables() -> list[dict[str, object]]:
    return [
        {
            "name": name.rpartition(".")[2],
            "location": location,
            "historyShared": True,
            "accessModes": ["dir"],
        }
        for name, location in LOCATIONS.items()
    ]
