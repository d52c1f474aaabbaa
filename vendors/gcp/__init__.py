"""Tables on Google Cloud Storage: tokens are narrowed to a directory by a credential access boundary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from gateway.domain.location import Location
from gateway.errors import Unsupported
from gateway.ports import OptionFault, Storage, StorageSettings, Vendor
from vendors.gcp.boundary import access_boundary
from vendors.gcp.config import GcpOptions, MetadataOptions, check, parse
from vendors.gcp.cutter import GcpCutter
from vendors.gcp.identity import LONGEST, Identity, open_transport
from vendors.gcp.issuer import GcpIssuer
from vendors.gcp.probe import GcpProbe
from vendors.gcp.reader import open_reader
from vendors.http import open_http
from vendors.options import check_files


class GcpVendor:
    """Reads and issues."""

    schemes = frozenset({"gs"})
    signs = False

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check_files(parse(options))

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        # What falls short of what was asked for is never kept, so that each request would mint its own.
        return ["tokens of Google live an hour at most: set credentialLife to 1h"] if life > LONGEST else []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        try:
            access_boundary(location)
        except Unsupported as exc:
            return [exc.message]
        return []

    @asynccontextmanager
    async def open(self, settings: StorageSettings) -> AsyncIterator[Storage]:
        options = parse(settings.options)
        bucket = settings.prefix.authority
        async with open_http(options.ca_file) as call:
            with open_transport(options.ca_file) as transport:
                identity = Identity(options, transport, settings.clock)
                yield Storage(
                    name=settings.name,
                    prefix=settings.prefix,
                    reader=await asyncio.to_thread(open_reader, options, bucket, identity),
                    issuer=GcpIssuer(
                        identity=identity, call=call, sts_url=options.sts_url, clock=settings.clock
                    ),
                    probe=GcpProbe(identity=identity, call=call, storage_url=options.storage_url),
                    cutter=GcpCutter(
                        bucket=bucket,
                        account=_account(options),
                        impersonates=options.identity.impersonate is not None,
                    ),
                )


def _account(options: GcpOptions) -> str | None:
    """Return the service account whose tokens are narrowed, where the settings name it."""
    if options.identity.impersonate is not None:
        return options.identity.impersonate.service_account
    return options.identity.service_account if isinstance(options.identity, MetadataOptions) else None


vendor: Vendor = GcpVendor()
