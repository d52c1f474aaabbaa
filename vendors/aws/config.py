"""The options of a storage entry on AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final

from pydantic import Field

from gateway.domain.location import Location
from gateway.errors import Unsupported
from gateway.ports import OptionFault
from vendors.boto_identity import BotoEndpoint
from vendors.boto_options import AwsIdentity, Https
from vendors.iam_policy import PolicyTerms, session_policy
from vendors.options import Options, Text, check_options, matching, parse_options
from vendors.s3_address import fits_host

SHORTEST: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(hours=12)
# What AWS gives to an identity that is a role's session itself.
LONGEST_CHAINED: Final = timedelta(hours=1)

_PARTITION: Final = r"arn:(aws[a-z-]*)"
RoleArn = Annotated[
    str,
    matching(
        rf"{_PARTITION}:iam::\d{{12}}:role/[\w+=,.@/-]+",
        "must be the ARN of a role, such as arn:aws:iam::123456789012:role/NAME",
    ),
]
KeyArn = Annotated[
    str,
    matching(
        rf"{_PARTITION}:kms:[a-z0-9-]+:\d{{12}}:key/[A-Za-z0-9-]+",
        "must be the ARN of a key, such as arn:aws:kms:eu-west-1:123456789012:key/ID",
    ),
]
AccessPointArn = Annotated[
    str,
    matching(
        rf"{_PARTITION}:s3:[a-z0-9-]+:\d{{12}}:accesspoint/[a-z0-9-]+",
        "must be the ARN of an access point, such as arn:aws:s3:eu-west-1:123456789012:accesspoint/NAME",
    ),
]
# What only the vendor of other stores knows: whoever gives one has named the wrong vendor.
_OF_OTHER_STORES: Final = frozenset(
    {"profile", "allowHttp", "pathStyle", "capabilities", "acceptCaseVariants"}
)


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
    dual_stack: bool = False
    endpoint: Https | None = None
    sts_endpoint: Https | None = None
    iam_endpoint: Https | None = None
    revocation: RevocationOptions = RevocationOptions()

    def disagreements(self) -> Iterator[OptionFault]:
        if self.identity is not None and self.region is None:
            yield OptionFault(path=("region",), message="is missing: the region of the bucket")
        if self.revocation.put_role_policy and self.role is None:
            yield OptionFault(path=("revocation", "putRolePolicy"), message="needs the option role")
        if self.dual_stack and self.endpoint is not None:
            message = "is for the region's own address: leave it out, or the option endpoint"
            yield OptionFault(path=("dualStack",), message=message)

    def endpoints(self, bucket: str) -> BotoEndpoint:
        return BotoEndpoint(
            region=self.region or "",
            sts=self.sts_endpoint or "",
            s3=self.endpoint or "",
            iam=self.iam_endpoint or "",
            # In the host's name where that can be; access points are never reached otherwise.
            path_style=self.access_point is None and (self.endpoint is not None or not fits_host(bucket)),
            dual_stack=self.dual_stack,
            access_point=self.access_point or "",
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


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    if foreign := [name for name in options if name in _OF_OTHER_STORES]:
        message = "is an option of the vendor s3: for a store that is not AWS, set vendor: s3"
        return [OptionFault(path=(foreign[0],), message=message)]
    # Without one, an entry would act as whatever the machine happens to be.
    named = options if options.get("identity") is not None else {**options, "identity": {}}
    return check_options(AwsOptions, named)


def check_dir(options: Mapping[str, object], location: Location) -> Sequence[str]:
    """Return why no credential can be issued for a location, in words."""
    parsed = parse(options)
    if parsed.role is None:
        return ["options.role is missing: it names the role whose sessions recipients are given"]
    try:
        session_policy(location, parsed.terms)
    except Unsupported as exc:
        return [exc.message]
    return []


def check_url(options: Mapping[str, object]) -> Sequence[str]:
    """Return why no URL can be signed, in words."""
    parsed = parse(options)
    if parsed.access_point is None or parsed.access_point.split(":")[3] == parsed.region:
        return []
    return ["options.accessPoint lies in another region than options.region, which URLs are signed for"]


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
