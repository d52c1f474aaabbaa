"""SeaweedFS with real STS: an administrator, a gateway that may do little, and a role that reads a lake."""

from __future__ import annotations

import base64
import json
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.ports import free_ports
from tests.stores.process import ServerProcess, listens, retried, running
from tests.stores.s3 import Keys, S3Store

BUCKET = "lake"
ROLE_NAME = "SluiceReader"
ROLE_ARN = f"arn:aws:iam::000000000000:role/{ROLE_NAME}"
GATEWAY_ARN = "arn:aws:iam::000000000000:user/gateway"
# It listens on each port's neighbour 10,000 above, too.
_GRPC_OFFSET = 10_000

# Otherwise a bucket takes seven at its first object, and a dozen buckets all that there are.
_ONE_VOLUME_A_BUCKET = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SeaweedFS(S3Store):
    """A running store with the bucket ``lake``; the role also opens every ``lake-…``, and nothing else.

    ``gateway`` may assume the role and read what lies in ``_delta_log`` folders. ``stranger`` may do the same
    by its own policy, but the role does not trust it.
    """

    gateway: Keys
    stranger: Keys
    role_arn: str = ROLE_ARN
    bucket: str = BUCKET
    # Whoever has it can make session tokens of his own.
    signing_key: bytes = field(repr=False)
    process: ServerProcess

    @property
    def sts_endpoint(self) -> str:
        return self.endpoint

    def assume_role(self, policy: Document | str | None = None, **parameters: Any) -> Document:
        """Return the ``Credentials`` that the gateway gets for the role, narrowed by a session policy."""
        if policy is not None:
            parameters["Policy"] = policy if isinstance(policy, str) else json.dumps(policy)
        request = {"RoleArn": self.role_arn, "RoleSessionName": "test", "DurationSeconds": 900} | parameters
        credentials: Document = self.client(self.gateway, "sts").assume_role(**request)["Credentials"]
        return credentials


@contextmanager
def running_seaweedfs(directory: Path, *, iam: Mapping[str, Any] | None = None) -> Iterator[SeaweedFS]:
    """Run a store in a new directory; ``iam`` adds to its lists of policies, roles and providers."""
    with retried(lambda: _start(directory, iam or {})) as store:
        yield store


@contextmanager
def _start(directory: Path, iam: Mapping[str, Any]) -> Iterator[SeaweedFS]:
    data = directory / secrets.token_hex(4)
    data.mkdir(parents=True)
    admin, gateway, stranger = _new_keys("admin"), _new_keys("gateway"), _new_keys("stranger")
    signing_key = secrets.token_bytes(32)
    s3_file, iam_file = data / "s3.json", data / "iam.json"
    s3_file.write_text(json.dumps(_identities(admin, gateway, stranger)))
    iam_file.write_text(json.dumps(_iam(signing_key, iam)))
    master, volume, filer, s3 = free_ports(4, also=_GRPC_OFFSET)
    probe = S3Store(endpoint=f"http://127.0.0.1:{s3}", admin=admin)
    command: list[str | Path] = [
        *(Path(sys.prefix) / "bin" / "weed", "-logtostderr=true", "server"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}"),
        *(f"-master.port={master}", f"-volume.port={volume}"),
        *("-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}"),
        # Left out, they are opened on fixed ports.
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-s3.config={s3_file}", f"-s3.iam.config={iam_file}"),
        *("-master.volumeSizeLimitMB=64", "-volume.max=100"),
    ]
    # It answers before it can store, so that only a stored object counts.
    with running(
        command,
        log_file=data / "log",
        ready=lambda: listens(s3) and probe.can_store([BUCKET]),
        env=_ONE_VOLUME_A_BUCKET,
    ) as process:
        yield SeaweedFS(
            endpoint=probe.endpoint,
            admin=admin,
            gateway=gateway,
            stranger=stranger,
            signing_key=signing_key,
            process=process,
        )


def _new_keys(name: str) -> Keys:
    return Keys(access_key_id=f"{name}{secrets.token_hex(4)}", secret_access_key=secrets.token_hex(16))


def _identities(admin: Keys, gateway: Keys, stranger: Keys) -> Document:
    return {
        "identities": [
            _identity("admin", admin) | {"actions": ["Admin", "Read", "Write", "List", "Tagging"]},
            _identity("gateway", gateway) | {"policyNames": ["Gateway"]},
            _identity("stranger", stranger) | {"policyNames": ["Gateway"]},
        ]
    }


def _identity(name: str, keys: Keys) -> Document:
    credentials = {"accessKey": keys.access_key_id, "secretKey": keys.secret_access_key}
    return {"name": name, "credentials": [credentials]}


def _iam(signing_key: bytes, more: Mapping[str, Any]) -> Document:
    trust = [_allow("sts:AssumeRole") | {"Principal": {"AWS": GATEWAY_ARN}}]
    role = {
        "roleName": ROLE_NAME,
        "roleArn": ROLE_ARN,
        "trustPolicy": _policy(trust),
        "attachedPolicies": ["ReadLake"],
    }
    policies = [
        {"name": "ReadLake", "document": _policy(_read_lake())},
        {"name": "Gateway", "document": _policy(_gateway())},
    ]
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "sluice-tests",
            "signingKey": base64.b64encode(signing_key).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [*policies, *more.get("policies", ())],
        "roles": [role, *more.get("roles", ())],
        "providers": list(more.get("providers", ())),
    }


def _read_lake() -> list[Document]:
    return [
        _allow("s3:GetObject", "s3:GetObjectVersion")
        | {"Resource": [f"arn:aws:s3:::{BUCKET}/*", f"arn:aws:s3:::{BUCKET}-*/*"]},
        _allow("s3:ListBucket", "s3:GetBucketLocation")
        | {"Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}-*"]},
    ]


def _gateway() -> list[Document]:
    below_log = "*/_delta_log/*"
    return [
        _allow("sts:AssumeRole") | {"Resource": [ROLE_ARN]},
        _allow("s3:GetObject")
        | {"Resource": [f"arn:aws:s3:::{BUCKET}/{below_log}", f"arn:aws:s3:::{BUCKET}-*/{below_log}"]},
        _allow("s3:ListBucket")
        | {
            "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}-*"],
            "Condition": {"StringLike": {"s3:prefix": [below_log]}},
        },
    ]


def _allow(*actions: str) -> Document:
    return {"Effect": "Allow", "Action": list(actions)}


def _policy(statements: list[Document]) -> Document:
    return {"Version": "2012-10-17", "Statement": statements}
