"""Who may do what in the compose file's store: a writer, three services, and a role."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

BUCKET: Final = "lake"
ROLE: Final = "Vended"
ROLE_ARN: Final = f"arn:aws:iam::000000000000:role/{ROLE}"
WRITER: Final = "writer"

_OBJECTS: Final = f"arn:aws:s3:::{BUCKET}/*"
_BUCKET: Final = f"arn:aws:s3:::{BUCKET}"
_LOGS: Final = "*/_delta_log/*"
_TRUSTED: Final = "arn:aws:iam::000000000000:user/vending"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    access_key_id: str
    secret_access_key: str = field(repr=False)


def _allow(actions: list[str], resources: list[str], **more: Document) -> Document:
    return {"Effect": "Allow", "Action": actions, "Resource": resources, **more}


# What each service's own identity opens, and nothing besides.
POLICIES: Final[dict[str, list[Document]]] = {
    "snapshot": [
        _allow(["s3:GetObject"], [f"{_BUCKET}/{_LOGS}"]),
        _allow(["s3:ListBucket"], [_BUCKET], Condition={"StringLike": {"s3:prefix": [_LOGS]}}),
    ],
    # A URL opens what its signer may read.
    "presign": [_allow(["s3:GetObject"], [_OBJECTS])],
    "vending": [_allow(["sts:AssumeRole"], [ROLE_ARN])],
}
_READ_LAKE: Final = [
    _allow(["s3:GetObject", "s3:GetObjectVersion"], [_OBJECTS]),
    _allow(["s3:ListBucket", "s3:GetBucketLocation"], [_BUCKET]),
]


def new_keys(name: str) -> Keys:
    return Keys(f"{name.upper()}{secrets.token_hex(6).upper()}", secrets.token_urlsafe(30))


def identities(keys: dict[str, Keys]) -> Document:
    """Return what ``-s3.config`` takes."""
    own = [_identity(name, keys[name]) | {"policyNames": [name]} for name in POLICIES]
    writer = _identity(WRITER, keys[WRITER]) | {"actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    return {"identities": [*own, writer]}


def roles() -> Document:
    """Return what ``-s3.iam.config`` takes."""
    # Named, so that a session of the role cannot ask for another, wider one.
    trust = {"Effect": "Allow", "Principal": {"AWS": _TRUSTED}, "Action": ["sts:AssumeRole"]}
    documents = {**POLICIES, "ReadLake": _READ_LAKE}
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "sluice-compose",
            "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": name, "document": _policy(*document)} for name, document in documents.items()],
        "roles": [
            {
                "roleName": ROLE,
                "roleArn": ROLE_ARN,
                "trustPolicy": _policy(trust),
                "attachedPolicies": ["ReadLake"],
            }
        ],
    }


def _identity(name: str, keys: Keys) -> Document:
    credentials = {"accessKey": keys.access_key_id, "secretKey": keys.secret_access_key}
    return {"name": name, "credentials": [credentials]}


def _policy(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}
