"""The options of a storage entry on AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from gateway.domain.location import Location
from gateway.errors import Unsupported
from vendors.boto_identity import BotoEndpoint
from vendors.boto_options import AwsIdentity, Https, check_entry
from vendors.iam_policy import PolicyTerms, session_policy
from vendors.options import Options, Text, parse_options

SHORTEST: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(hours=12)
# What AWS gives to an identity that is a role's session itself.
LONGEST_CHAINED: Final = timedelta(hours=1)

_PARTITION = r"arn:(aws[a-z-]*)"
RoleArn = Annotated[str, Field(pattern=rf"^{_PARTITION}:iam::\d{{12}}:role/[\w+=,.@/-]+$")]
KeyArn = Annotated[str, Field(pattern=rf"^{_PARTITION}:kms:[a-z0-9-]+:\d{{12}}:key/[A-Za-z0-9-]+$")]
AccessPointArn = Annotated[
    str, Field(pattern=rf"^{_PARTITION}:s3:[a-z0-9-]+:\d{{12}}:accesspoint/[a-z0-9-]+$")
]


class RoleOptions(Options):
    """The role whose sessions recipients are given."""

    arn: RoleArn
    external_id: Text | None = None


class RevocationOptions(Options):
    put_role_policy: bool = False


class AwsOptions(Options):
    region: Text | None = None
    # None only in a file without storages, where the SDK's chain is meant.
    identity: AwsIdentity | None = None
    role: RoleOptions | None = None
    session_tags: bool = True
    kms_keys: Annotated[tuple[KeyArn, ...], Field(strict=False)] = ()
    access_point: AccessPointArn | None = None
    endpoint: Https | None = None
    sts_endpoint: Https | None = None
    iam_endpoint: Https | None = None
    revocation: RevocationOptions = RevocationOptions()

    @model_validator(mode="after")
    def _region_is_known(self) -> Self:
        if self.identity is not None and self.region is None:
            raise ValueError("the option 'region' is missing: the region of the bucket")
        return self

    @model_validator(mode="after")
    def _revocation_has_a_role(self) -> Self:
        if self.revocation.put_role_policy and self.role is None:
            raise ValueError("revocation.putRolePolicy needs the option 'role'")
        return self

    def endpoints(self, bucket: str) -> BotoEndpoint:
        return BotoEndpoint(
            region=self.region or "",
            sts=self.sts_endpoint or "",
            s3=self.endpoint or "",
            iam=self.iam_endpoint or "",
            # In the host's name, as access points want it; not where no certificate could match that name.
            path_style=self.endpoint is not None or "." in bucket,
        )

    @property
    def terms(self) -> PolicyTerms:
        return PolicyTerms(
            partition=self.partition, access_point=self.access_point or "", kms_keys=self.kms_keys
        )

    @property
    def partition(self) -> str:
        """Return the part of AWS that the role, or else the region, lies in."""
        if self.role is not None:
            return self.role.arn.split(":")[1]
        region = self.region or ""
        if region.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def check(options: Mapping[str, object]) -> Sequence[str]:
    """Return what is wrong with the options, in words."""
    return check_entry(AwsOptions, options)


def check_dir(options: Mapping[str, object], location: Location, life: timedelta) -> Sequence[str]:
    """Return why no credential can be issued for a location, in words."""
    if check(options):
        return []
    parsed = parse_options(AwsOptions, options)
    if parsed.role is None:
        return ["the option 'role' is missing: it names the role whose sessions recipients are given"]
    try:
        check_life(life, parsed)
        session_policy(location, parsed.terms)
    except Unsupported as exc:
        return [exc.message]
    return []


def check_life(life: timedelta, options: AwsOptions) -> None:
    """Raise ``Unsupported`` for a life that STS never gives."""
    if not SHORTEST <= life <= LONGEST:
        raise Unsupported("credentials on AWS live from 15 minutes to 12 hours: change credentialLife")
    if life > LONGEST_CHAINED and options.identity is not None and options.identity.is_role:
        raise Unsupported(
            "credentials of this storage live an hour at most, as the gateway's own identity is an "
            "assumed role: set credentialLife to 1h"
        )


def parse(options: Mapping[str, object]) -> AwsOptions:
    """Return options that were checked before."""
    return parse_options(AwsOptions, options)
