"""Tables on Cloudflare R2: URLs and temporary credentials that the secret of a parent token signs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

from gateway.domain.location import Location
from gateway.ports import Clock, CredentialIssuer, OptionFault, Storage, StorageSettings, Vendor
from vendors.http import Call, open_http
from vendors.obstore_reader import ObstoreReader
from vendors.obstore_state import ObstoreState
from vendors.options import check_files
from vendors.r2.api import CloudflareApi
from vendors.r2.config import R2Options, check, parse
from vendors.r2.cutter import IsDead, R2Cutter, is_refused
from vendors.r2.identity import Identity
from vendors.r2.issuer import ApiIssuer, LocalIssuer
from vendors.r2.probe import open_probe
from vendors.r2.reader import find_reach, open_own
from vendors.r2.signer import open_signer
from vendors.s3_spark import S3Spark

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


class R2Vendor:
    """Reads, signs and issues."""

    schemes = frozenset({"s3"})

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check_files(parse(options))

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return _check_bucket(location)

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return _check_bucket(location)

    @asynccontextmanager
    async def open(self, settings: StorageSettings) -> AsyncIterator[Storage]:
        options = parse(settings.options)
        bucket = settings.prefix.authority
        identity = Identity(options.identity)
        async with open_http() as call:
            probe = open_probe(options, bucket, identity, call, settings.clock)
            store = open_own(options, bucket, identity, settings.clock)
            yield Storage(
                name=settings.name,
                prefix=settings.prefix,
                reader=ObstoreReader(store),
                open_state=partial(ObstoreState, store),
                spark=S3Spark(bucket, partial(find_reach, options, identity)),
                signer=open_signer(options, settings.prefix, identity) if settings.sessions else None,
                issuer=_issuer(options, identity, call, settings.clock),
                probe=probe,
                cutter=_cutter(options, call, partial(is_refused, probe, settings.prefix)),
            )


def _check_bucket(location: Location) -> Sequence[str]:
    if _BUCKET.fullmatch(location.authority):
        return []
    return [f"{location.authority!r} is no name of a bucket on R2: letters, digits and hyphens only"]


def _issuer(options: R2Options, identity: Identity, call: Call, clock: Clock) -> CredentialIssuer:
    if options.api_token is None:
        return LocalIssuer(options=options, identity=identity, clock=clock)
    api = CloudflareApi(endpoint=options.api_endpoint, token=options.api_token, call=call)
    return ApiIssuer(options=options, identity=identity, api=api, clock=clock)


def _cutter(options: R2Options, call: Call, is_dead: IsDead) -> R2Cutter:
    revocation = options.revocation
    if revocation is None or not revocation.delete_parent_token:
        return R2Cutter(options=options, api=None)
    api = CloudflareApi(endpoint=options.api_endpoint, token=revocation.api_token, call=call)
    return R2Cutter(options=options, api=api, is_dead=is_dead)


vendor: Vendor = R2Vendor()
