"""Who may do what in the embedded S3: an administrator, the gateway, and a role that reads the lake."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

BUCKET: Final = "lake"
ROLE_NAME: Final = "SluiceReader"
ROLE_ARN: Final = f"arn:aws:iam::000000000000:role/{ROLE_NAME}"

_GATEWAY: Final = "gateway"
_GATEWAY_ARN: Final = f"arn:aws:iam::000000000000:user/{_GATEWAY}"
_READ_LAKE: Final = "ReadLake"
_BE_GATEWAY: Final = "BeGateway"
_LOGS: Final = "*/_delta_log/*"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    access_key_id: str
    secret_access_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The keys of one start of the store; the next one has others."""

    admin: Keys
    gateway: Keys
    signing_key: bytes = field(repr=False)


def new_access() -> Access:
    return Access(admin=_new_keys("ADMIN"), gateway=_new_keys("GATEWAY"), signing_key=secrets.token_bytes(32))


def identities(access: Access) -> Document:
    """Return what ``-s3.config`` takes."""
    admin = _identity("admin", access.admin) | {"actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    gateway = _identity(_GATEWAY, access.gateway) | {"policyNames": [_BE_GATEWAY]}
    return {"identities": [admin, gateway]}


def iam(access: Access) -> Document:
    """Return what ``-s3.iam.config`` takes: who may assume the role, and what the role opens."""
    trust = _allow("sts:AssumeRole") | {"Principal": {"AWS": _GATEWAY_ARN}}
    role = {
        "roleName": ROLE_NAME,
        "roleArn": ROLE_ARN,
        "trustPolicy": _policy(trust),
        "attachedPolicies": [_READ_LAKE],
    }
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "sluice-demo",
            "signingKey": base64.b64encode(access.signing_key).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [
            {"name": _READ_LAKE, "document": _policy(*_read_lake())},
            {"name": _BE_GATEWAY, "document": _policy(*_be_gateway())},
        ],
        "roles": [role],
    }


def _read_lake() -> tuple[Document, ...]:
    return (
        _allow("s3:GetObject", "s3:GetObjectVersion") | {"Resource": [f"arn:aws:s3:::{BUCKET}/*"]},
        _allow("s3:ListBucket", "s3:GetBucketLocation") | {"Resource": [f"arn:aws:s3:::{BUCKET}"]},
    )


def _be_gateway() -> tuple[Document, ...]:
    """Return the least that a gateway needs: to assume the role, to list the logs, and to read.

    A URL opens what its signer may read, so that one who signs with his own keys reads the files themselves.
    """
    return (
        _allow("sts:AssumeRole") | {"Resource": [ROLE_ARN]},
        _allow("s3:GetObject") | {"Resource": [f"arn:aws:s3:::{BUCKET}/*"]},
        _allow("s3:ListBucket")
        | {"Resource": [f"arn:aws:s3:::{BUCKET}"], "Condition": {"StringLike": {"s3:prefix": [_LOGS]}}},
    )


def _new_keys(name: str) -> Keys:
    return Keys(
        access_key_id=f"{name}{secrets.token_hex(6).upper()}", secret_access_key=secrets.token_urlsafe(30)
    )


def _identity(name: str, keys: Keys) -> Document:
    credentials = {"accessKey": keys.access_key_id, "secretKey": keys.secret_access_key}
    return {"name": name, "credentials": [credentials]}


def _allow(*actions: str) -> Document:
    return {"Effect": "Allow", "Action": list(actions)}


def _policy(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}
