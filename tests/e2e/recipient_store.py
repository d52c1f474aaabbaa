"""A SeaweedFS whose S3 front can be started anew with another signing key: all its sessions are then void."""

from __future__ import annotations

import base64
import json
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.ports import free_ports
from tests.stores.process import listens, running
from tests.stores.s3 import Keys, S3Store, keys_of

BUCKET = "lake"
ROLE = "arn:aws:iam::000000000000:role/Reader"
_WEED = Path(sys.prefix) / "bin" / "weed"
_GRPC_OFFSET = 10_000


class VoidableStore:
    """Tables, and sessions that open one of them until they are made void."""

    def __init__(self, directory: Path, filer: int, stack: ExitStack) -> None:
        self._directory = directory
        self._filer = filer
        self._stack = stack
        self._port = free_ports(1, also=_GRPC_OFFSET)[0]
        admin = Keys(access_key_id="admin", secret_access_key=secrets.token_hex(16))
        self.s3 = S3Store(endpoint=f"http://127.0.0.1:{self._port}", admin=admin)
        self._front = self._stack.enter_context(self._run_front())

    def mint(self, location: str) -> Mapping[str, Any]:
        """Return the keys of a session that reads and lists one directory."""
        answer = self.s3.client(self.s3.admin, "sts").assume_role(
            RoleArn=ROLE,
            RoleSessionName="recipient",
            DurationSeconds=900,
            Policy=json.dumps(read_policy(location)),
        )
        credentials: Mapping[str, Any] = answer["Credentials"]
        return credentials

    def make_void(self) -> None:
        """Let no session that was minted so far open anything any more."""
        self._front.kill()
        self._front = self._stack.enter_context(self._run_front())

    def opens(self, credentials: Mapping[str, Any], key: str) -> bool:
        """Say whether a session's keys read an object."""
        client = self.s3.client(keys_of(dict(credentials)))
        try:
            client.get_object(Bucket=BUCKET, Key=key)
        except client.exceptions.ClientError as exc:
            if exc.response["ResponseMetadata"]["HTTPStatusCode"] != HTTPStatus.FORBIDDEN:
                raise
            return False
        return True

    def _run_front(self) -> AbstractContextManager[Any]:
        name = secrets.token_hex(4)
        identities, iam = self._directory / f"{name}.s3.json", self._directory / f"{name}.iam.json"
        identities.write_text(json.dumps(_identities(self.s3.admin)))
        iam.write_text(json.dumps(_iam(secrets.token_bytes(32))))
        command: list[str | Path] = [
            *(_WEED, "-logtostderr=true", "s3", "-ip.bind=127.0.0.1", f"-port={self._port}"),
            *("-port.iceberg=0", "-port.lance=0", f"-filer=127.0.0.1:{self._filer}"),
            *(f"-config={identities}", f"-iam.config={iam}"),
        ]
        return running(
            command,
            log_file=self._directory / f"{name}.log",
            ready=lambda: listens(self._port) and self.s3.can_store([BUCKET]),
        )


@contextmanager
def voidable_store(directory: Path) -> Iterator[VoidableStore]:
    """Run such a store in a new directory."""
    master, volume, filer = free_ports(3, also=_GRPC_OFFSET)
    command: list[str | Path] = [
        *(_WEED, "-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={directory}"),
        *(f"-master.port={master}", f"-volume.port={volume}", "-filer", f"-filer.port={filer}"),
        *("-master.volumeSizeLimitMB=64", "-volume.max=20"),
    ]
    with (
        running(command, log_file=directory / "log", ready=lambda: listens(filer) and listens(volume)),
        ExitStack() as stack,
    ):
        yield VoidableStore(directory, filer, stack)


def read_policy(location: str) -> dict[str, Any]:
    """Return a session policy that reads and lists one directory."""
    bucket, _, path = location.removeprefix("s3://").partition("/")
    arn = f"arn:aws:s3:::{bucket}"
    below = {"StringLike": {"s3:prefix": [f"{path}/*"]}}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [f"{arn}/{path}/*"]},
            {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [arn], "Condition": below},
        ],
    }


def _identities(admin: Keys) -> dict[str, Any]:
    credentials = {"accessKey": admin.access_key_id, "secretKey": admin.secret_access_key}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "admin", "credentials": [credentials], "actions": actions}]}


def _iam(signing_key: bytes) -> dict[str, Any]:
    read = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:ListBucket"],
        "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"],
    }
    trust = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"AWS": "*"}}
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "sluice-tests",
            "signingKey": base64.b64encode(signing_key).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": "Read", "document": {"Version": "2012-10-17", "Statement": [read]}}],
        "roles": [
            {
                "roleName": "Reader",
                "roleArn": ROLE,
                "trustPolicy": {"Version": "2012-10-17", "Statement": [trust]},
                "attachedPolicies": ["Read"],
            }
        ],
    }
