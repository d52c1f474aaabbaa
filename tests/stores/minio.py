"""MinIO: a second S3 store whose STS enforces session policies, and which has no roles."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.installed import installed
from tests.ports import free_ports
from tests.stores.process import ServerProcess, listens, retried, running
from tests.stores.s3 import Keys, S3Store

BUCKET = "lake"


@dataclass(frozen=True, kw_only=True)
class Minio(S3Store):
    """A running store with the bucket ``lake``. Its administrator's keys are the gateway's too."""

    bucket: str = BUCKET
    process: ServerProcess

    @property
    def gateway(self) -> Keys:
        return self.admin

    @property
    def sts_endpoint(self) -> str:
        return self.endpoint

    def assume_role(self, policy: dict[str, Any] | str, **parameters: Any) -> dict[str, Any]:
        """Return ``Credentials`` narrowed by a session policy."""
        document = policy if isinstance(policy, str) else json.dumps(policy)
        # The SDK wants a role, which the store does not look at.
        role = {"RoleArn": "arn:aws:iam::000000000000:role/any", "RoleSessionName": "test"}
        request = {**role, "DurationSeconds": 900, "Policy": document} | parameters
        credentials: dict[str, Any] = self.client(self.admin, "sts").assume_role(**request)["Credentials"]
        return credentials


@contextmanager
def running_minio(directory: Path) -> Iterator[Minio]:
    """Run a store in a new directory."""
    program = installed("minio")
    with retried(lambda: _start(program, directory)) as store:
        yield store


@contextmanager
def _start(program: Path, directory: Path) -> Iterator[Minio]:
    data = directory / secrets.token_hex(4)
    data.mkdir(parents=True)
    admin = Keys(access_key_id=f"admin{secrets.token_hex(4)}", secret_access_key=secrets.token_hex(16))
    port, console = free_ports(2)
    probe = S3Store(endpoint=f"http://127.0.0.1:{port}", admin=admin)
    addresses = ["--address", f"127.0.0.1:{port}", "--console-address", f"127.0.0.1:{console}"]
    env = {
        "MINIO_ROOT_USER": admin.access_key_id,
        "MINIO_ROOT_PASSWORD": admin.secret_access_key,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
        # It otherwise refuses a directory on the disk of the system itself.
        "MINIO_CI_CD": "1",
    }
    with running(
        [program, "server", *addresses, data / "objects"],
        log_file=data / "log",
        ready=lambda: listens(port) and probe.can_store([BUCKET]),
        env=env,
    ) as process:
        yield Minio(endpoint=probe.endpoint, admin=admin, process=process)
