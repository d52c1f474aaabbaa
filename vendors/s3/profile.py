"""What the token services of S3-compatible stores can do, as far as it was tried or is documented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final


class RoleUse(StrEnum):
    REQUIRED = "required"
    OPTIONAL = "optional"
    # The store takes a role and forgets it: whoever sets one would believe in a limit that is not there.
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """A store's own; what it would silently ignore is not offered."""

    role: RoleUse
    # Whether a policy that comes with the request narrows the session. Without it no credential is safe.
    inline_policy: bool
    # Whether ``${*}``, ``${?}`` and ``${$}`` stand for the characters themselves.
    escapes_wildcards: bool
    # Whether a policy for ``t/orders`` opens ``t/Orders`` too.
    folds_case: bool
    external_id: bool
    session_tags: bool
    bucket_location: bool
    shortest: timedelta = timedelta(minutes=15)
    longest: timedelta = timedelta(hours=12)
    # How to cut off what is out already.
    revocation: str


SEAWEEDFS: Final = Capabilities(
    # Without a role it gives sessions to administrators only, which the gateway has no reason to be.
    role=RoleUse.REQUIRED,
    inline_policy=True,
    escapes_wildcards=False,
    folds_case=True,
    external_id=False,
    session_tags=False,
    bucket_location=True,
    revocation="SeaweedFS keeps no list of its sessions: they live to their expiry. Another signing key "
    "(sts.signingKey of its IAM configuration, then a restart) ends those of all recipients at once",
)
MINIO: Final = Capabilities(
    role=RoleUse.IGNORED,
    inline_policy=True,
    escapes_wildcards=False,
    folds_case=False,
    external_id=False,
    session_tags=False,
    bucket_location=True,
    longest=timedelta(days=7),
    revocation="MinIO ends sessions by the user that asked for them, which is the gateway, so those of all "
    "recipients at once: mc admin accesskey sts-revoke ALIAS USER --all",
)
CEPH: Final = Capabilities(
    role=RoleUse.REQUIRED,
    inline_policy=True,
    escapes_wildcards=False,
    folds_case=False,
    external_id=False,
    session_tags=False,
    bucket_location=True,
    revocation="sessions of Ceph live to their expiry; its documentation names no way to end them earlier",
)

PROFILES: Final[Mapping[str, Capabilities]] = {"seaweedfs": SEAWEEDFS, "minio": MINIO, "ceph": CEPH}
