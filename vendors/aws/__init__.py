"""Tables on Amazon S3: signed URLs, and sessions of a role that are scoped to a directory by a policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

from gateway.domain.location import Location
from gateway.errors import Unsupported
from gateway.ports import OptionFault, Storage, StorageSettings, Vendor
from vendors.aws.config import check, check_dir, check_life, check_url, parse
from vendors.aws.cutter import AwsCutter
from vendors.aws.issuer import AwsIssuer
from vendors.boto_identity import BotoIdentity
from vendors.boto_options import CHAIN
from vendors.options import check_files
from vendors.s3_access import S3Access, open_threads
from vendors.sts import Sts


class AwsVendor:
    schemes = frozenset({"s3"})

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check_files(parse(options))

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        try:
            check_life(life, parse(options))
        except Unsupported as exc:
            return [exc.message]
        return []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return check_dir(options, location)

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return check_url(options)

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]:
        return _open(settings)


vendor: Vendor = AwsVendor()


@asynccontextmanager
async def _open(settings: StorageSettings) -> AsyncIterator[Storage]:
    options = parse(settings.options)
    bucket = settings.prefix.authority
    endpoint = options.endpoints(bucket)
    identity = BotoIdentity(options.identity or CHAIN, endpoint)
    with open_threads(settings.name) as threads:
        access = S3Access(bucket, endpoint, identity, threads, settings.clock)
        issuer = cutter = None
        if options.role is not None:
            sts = Sts(
                identity.sts, threads, storage=settings.name, metrics=settings.metrics, key_id=identity.key_id
            )
            issuer = AwsIssuer(options, options.role, sts)
            cutter = AwsCutter(
                options, options.role, open_iam=identity.iam, threads=threads, clock=settings.clock
            )
        yield Storage(
            name=settings.name,
            prefix=settings.prefix,
            reader=access.reader(),
            open_state=access.state,
            spark=access.spark(),
            signer=access.signer(settings.prefix, settings.sessions) if settings.sessions else None,
            issuer=issuer,
            probe=access.probe(),
            cutter=cutter,
        )
