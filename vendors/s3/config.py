"""The options of a storage entry on an S3-compatible store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from gateway.domain.location import Location
from gateway.errors import Unsupported
from gateway.ports import OptionFault
from vendors.boto_identity import BotoEndpoint
from vendors.boto_options import AwsIdentity, RoleArn, Url, is_clear
from vendors.iam_policy import PolicyTerms, session_policy
from vendors.options import Options, Text, check_options, parse_options
from vendors.s3.profile import PROFILES, Capabilities, RoleUse
from vendors.s3_address import fits_host

Seconds = Annotated[int, Field(gt=0)]


_UNITS: Final = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


class RoleOptions(Options):
    arn: RoleArn
    external_id: Text | None = None


class CapabilityOptions(Options):
    """What a store of one's own can do; what is not said, it cannot."""

    role: Literal["required", "optional", "ignored"] = "optional"
    inline_policy: bool = False
    escapes_wildcards: bool = False
    folds_case: bool = False
    external_id: bool = False
    session_tags: bool = False
    bucket_location: bool = True
    shortest_seconds: Seconds = 900
    longest_seconds: Seconds = 43200

    def capabilities(self) -> Capabilities:
        return Capabilities(
            role=RoleUse(self.role),
            inline_policy=self.inline_policy,
            escapes_wildcards=self.escapes_wildcards,
            folds_case=self.folds_case,
            external_id=self.external_id,
            session_tags=self.session_tags,
            bucket_location=self.bucket_location,
            shortest=timedelta(seconds=self.shortest_seconds),
            longest=timedelta(seconds=self.longest_seconds),
            revocation="sessions live to their expiry, unless the store has a way to end them",
        )


class S3Options(Options):
    profile: Literal["seaweedfs", "minio", "ceph", "custom"]
    capabilities: CapabilityOptions | None = None
    endpoint: Url
    sts_endpoint: Url | None = None
    region: Text = "us-east-1"
    path_style: bool = True
    ca_file: Text | None = None
    # Keys may be sent over a network without encryption.
    allow_http: bool = False
    identity: AwsIdentity
    role: RoleOptions | None = None
    session_tags: bool = False
    # The operator has made sure that no two directories differ by upper and lower case only.
    accept_case_variants: bool = False

    def disagreements(self) -> Iterator[OptionFault]:
        for name, url in (("endpoint", self.endpoint), ("stsEndpoint", self.sts_endpoint or "")):
            if not self.allow_http and is_clear(url):
                message = "would send keys in the clear: use https://, or set allowHttp: true"
                yield OptionFault(path=(name,), message=message)
        if (self.profile == "custom") != (self.capabilities is not None):
            message = "is for profile: custom, which needs it to say what the store can do"
            yield OptionFault(path=("capabilities",), message=message)
        else:
            yield from self._beyond(self.can)

    def _beyond(self, can: Capabilities) -> Iterator[OptionFault]:
        """Return what the store would silently ignore."""
        if self.role is not None and can.role is RoleUse.IGNORED:
            yield OptionFault(path=("role",), message=f"is ignored by {self.profile}: remove it")
        elif self.role is not None and self.role.external_id and not can.external_id:
            message = f"is not checked by {self.profile}: remove it"
            yield OptionFault(path=("role", "externalId"), message=message)
        if self.session_tags and not can.session_tags:
            yield OptionFault(path=("sessionTags",), message=f"are not kept by {self.profile}: remove it")

    @property
    def can(self) -> Capabilities:
        if self.capabilities is not None:
            return self.capabilities.capabilities()
        return PROFILES[self.profile]

    def endpoints(self, bucket: str) -> BotoEndpoint:
        return BotoEndpoint(
            region=self.region,
            sts=self.sts_endpoint or self.endpoint,
            s3=self.endpoint,
            path_style=self.path_style or not fits_host(bucket, self.endpoint),
            ca_file=self.ca_file or "",
        )


def policy_for(location: Location, options: S3Options) -> str:
    """Return the session policy for a location; raise ``Unsupported`` when none says exactly that."""
    can = options.can
    if not can.inline_policy:
        raise Unsupported("this store does not narrow sessions by a policy, so none would open a table alone")
    if can.role is RoleUse.REQUIRED and options.role is None:
        raise Unsupported("this store gives sessions of a role only: set options.role")
    if can.folds_case and not options.accept_case_variants and _has_case(location.path):
        raise Unsupported(
            "this store's policies do not tell upper from lower case: a credential for t/orders also reads "
            "t/Orders. Set acceptCaseVariants: true where no two directories differ by case only"
        )
    terms = PolicyTerms(escapes=can.escapes_wildcards, bucket_location=can.bucket_location)
    return session_policy(location, terms)


def check(options: Mapping[str, object]) -> Sequence[OptionFault]:
    """Return what is wrong with the options."""
    return check_options(S3Options, options)


def check_dir(options: Mapping[str, object], location: Location) -> Sequence[str]:
    """Return why no credential can be issued for a location, in words."""
    try:
        policy_for(location, parse(options))
    except Unsupported as exc:
        return [exc.message]
    return []


def check_life(life: timedelta, options: S3Options) -> None:
    """Raise ``Unsupported`` for a life that the store never gives."""
    shortest, longest = options.can.shortest, options.can.longest
    if not shortest <= life <= longest:
        raise Unsupported(
            f"credentials of this store live from {_in_words(shortest)} to {_in_words(longest)}: "
            "change credentialLife"
        )


def parse(options: Mapping[str, object]) -> S3Options:
    """Return options that were checked before."""
    return parse_options(S3Options, options)


def _has_case(text: str) -> bool:
    return text.upper() != text.lower()


def _in_words(span: timedelta) -> str:
    for name, unit in _UNITS:
        if span % unit == timedelta(0):
            return f"{span // unit} {name}{'' if span == unit else 's'}"
    return f"{span.total_seconds():g} seconds"
