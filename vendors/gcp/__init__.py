"""Tables on Google Cloud Storage: URLs of version 4, and tokens narrowed by a credential access boundary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from gateway.domain.location import Location
from gateway.errors import Unsupported
from gateway.ports import OptionFault, Signer, Storage, StorageSettings, Vendor
from vendors.gcp.boundary import access_boundary
from vendors.gcp.config import check, parse
from vendors.gcp.cutter import GcpCutter
from vendors.gcp.identity import LONGEST, Identity, open_transport
from vendors.gcp.issuer import GcpIssuer
from vendors.gcp.probe import GcpProbe
from vendors.gcp.reader import open_store
from vendors.gcp.signer import Signers, why_unsigned
from vendors.http import open_http
from vendors.obstore_reader import ObstoreReader
from vendors.obstore_state import ObstoreState
from vendors.options import check_files


class GcpVendor:
    """Reads, signs and issues."""

    schemes = frozenset({"gs"})

    def __init__(self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._sleep = sleep

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

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        # A file without storages names nobody: who signs is found out when it is asked for.
        return why_unsigned(parse(options)) if options else []

    @asynccontextmanager
    async def open(self, settings: StorageSettings) -> AsyncIterator[Storage]:
        options = parse(settings.options)
        bucket = settings.prefix.authority
        async with open_http(options.ca_file) as call:
            with open_transport(options.ca_file) as transport:
                identity = Identity(options, transport, settings.clock)
                store = await asyncio.to_thread(open_store, options, bucket, identity)
                signers = Signers(
                    options=options,
                    identity=identity,
                    transport=transport,
                    call=call,
                    clock=settings.clock,
                    sleep=self._sleep,
                )
                yield Storage(
                    name=settings.name,
                    prefix=settings.prefix,
                    reader=ObstoreReader(store),
                    open_state=partial(ObstoreState, store),
                    signer=_signer(settings, signers),
                    issuer=GcpIssuer(
                        identity=identity, call=call, sts_url=options.sts_url, clock=settings.clock
                    ),
                    probe=GcpProbe(identity=identity, call=call, storage_url=options.storage_url),
                    cutter=GcpCutter(
                        bucket=bucket,
                        account=options.account.email if options.account else None,
                        impersonates=options.identity.impersonate is not None,
                    ),
                )


def _signer(settings: StorageSettings, signers: Signers) -> Signer | None:
    if settings.sessions is None:
        return None
    return signers.by_options() if settings.options else signers.by_surroundings()


vendor: Vendor = GcpVendor()
