"""Tables on S3-compatible stores that have a token service: SeaweedFS, MinIO, Ceph and the like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial

from gateway.domain.location import Location
from gateway.errors import Unsupported
from gateway.ports import OptionFault, Storage, StorageSettings, Vendor
from vendors.boto_identity import BotoIdentity
from vendors.options import check_files
from vendors.s3.config import check, check_dir, check_life, parse
from vendors.s3.cutter import S3Cutter
from vendors.s3.issuer import S3Issuer
from vendors.s3_access import S3Access, open_threads
from vendors.sts import Sts


class S3Vendor:
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
        return []

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]:
        return _open(settings)


vendor: Vendor = S3Vendor()


@asynccontextmanager
async def _open(settings: StorageSettings) -> AsyncIterator[Storage]:
    options = parse(settings.options)
    bucket = settings.prefix.authority
    endpoint = options.endpoints(bucket)
    identity = BotoIdentity(options.identity, endpoint)
    with open_threads(settings.name) as threads:
        access = S3Access(bucket, endpoint, identity, threads, settings.clock)
        sts = Sts(
            identity.sts, threads, storage=settings.name, metrics=settings.metrics, key_id=identity.key_id
        )
        yield Storage(
            name=settings.name,
            prefix=settings.prefix,
            reader=access.reader(),
            # Nobody knows in what order such a store lists.
            open_state=partial(access.state, lists_in_order=False),
            spark=access.spark(),
            signer=access.signer(settings.prefix, settings.sessions) if settings.sessions else None,
            issuer=S3Issuer(options, sts),
            probe=access.probe(),
            cutter=S3Cutter(options.can),
            folds_case=options.accept_case_variants,
        )
