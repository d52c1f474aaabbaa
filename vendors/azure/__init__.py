"""Tables in Azure storage accounts: logs are read through the blob service, directories opened by SAS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

from gateway.domain.location import Location
from gateway.ports import OptionFault, Storage, StorageSettings, Vendor
from vendors.azure.account import Account, read_account
from vendors.azure.config import AzureOptions, check, parse
from vendors.azure.cutter import AzureCutter
from vendors.azure.delegation_key import DelegationKeys
from vendors.azure.identity import STORAGE_SCOPE, Tokens
from vendors.azure.issuer import AzureIssuer
from vendors.azure.limits import scope_faults, spelling_faults
from vendors.azure.probe import AzureProbe
from vendors.azure.reader import open_store
from vendors.http import Call, open_http
from vendors.obstore_reader import ObstoreReader
from vendors.options import check_files


class AzureVendor:
    schemes = frozenset({"abfss"})
    signs = False

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check_files(parse(options))

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        parsed = parse(options)
        return [*scope_faults(parsed, location), *spelling_faults(parsed, location)]

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]:
        return _open(settings)


@asynccontextmanager
async def _open(settings: StorageSettings) -> AsyncIterator[Storage]:
    options = parse(settings.options)
    account = read_account(settings.prefix, options.blob_endpoint)
    async with open_http(options.ca_file) as http:
        tokens = Tokens(options, settings.name, STORAGE_SCOPE, settings.clock)
        # It reads the file of certificates.
        store = await asyncio.to_thread(open_store, account, options.ca_file, tokens)
        keys = DelegationKeys(
            storage=settings.name,
            endpoint=account.endpoint,
            options=options,
            tokens=tokens,
            http=http,
            clock=settings.clock,
        )
        yield Storage(
            name=settings.name,
            prefix=settings.prefix,
            reader=ObstoreReader(store),
            issuer=AzureIssuer(settings, options, account, keys.get),
            probe=AzureProbe(account, tokens, http),
            cutter=_cutter(settings, options, account, http, keys),
        )


def _cutter(
    settings: StorageSettings, options: AzureOptions, account: Account, http: Call, keys: DelegationKeys
) -> AzureCutter:
    endpoint = options.revocation.endpoint if options.revocation else ""
    # The management API is an audience of its own.
    tokens = Tokens(options, settings.name, f"{endpoint}/.default", settings.clock)
    return AzureCutter(account, options.revocation, tokens, http, keys.forget)


vendor: Vendor = AzureVendor()
