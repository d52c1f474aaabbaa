"""Tables in Azure storage accounts: logs are read through the blob service, the rest is opened by SAS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial

from gateway.domain.location import Location
from gateway.ports import OptionFault, Storage, StorageSettings, Vendor
from vendors.azure.account import Account, host_fault, read_account
from vendors.azure.account_key import AccountKeys
from vendors.azure.config import AccountKeyIdentity, AzureOptions, check, parse
from vendors.azure.cutter import AzureCutter
from vendors.azure.delegation_key import DelegationKeys
from vendors.azure.identity import STORAGE_SCOPE, Tokens
from vendors.azure.issuer import AzureIssuer
from vendors.azure.limits import scope_faults, spelling_faults
from vendors.azure.probe import AzureProbe
from vendors.azure.reader import by_key, by_token, open_store
from vendors.azure.session_key import SessionKeys
from vendors.azure.signer import AzureSigner
from vendors.http import Call, open_http
from vendors.obstore_reader import ObstoreReader
from vendors.obstore_state import ObstoreState
from vendors.options import check_files


class AzureVendor:
    schemes = frozenset({"abfss"})

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check_files(parse(options))

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        parsed = parse(options)
        return [*scope_faults(parsed, location), *spelling_faults(parsed, location)]

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        # A SAS for a blob needs no directories, so that it does not matter what kind of account it is.
        fault = host_fault(location)
        return [fault] if fault else []

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]:
        return _open(settings)


@asynccontextmanager
async def _open(settings: StorageSettings) -> AsyncIterator[Storage]:
    options = parse(settings.options)
    account = read_account(settings.prefix, options.blob_endpoint)
    if isinstance(options.identity, AccountKeyIdentity):
        yield await _open_by_key(settings, options, options.identity, account)
        return
    async with open_http(options.ca_file) as http:
        tokens = Tokens(options, settings.name, STORAGE_SCOPE, settings.clock)
        # It reads the file of certificates.
        store = await asyncio.to_thread(open_store, account, options.ca_file, by_token(tokens))
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
            open_state=partial(ObstoreState, store),
            signer=_signer(settings, options, account, keys),
            issuer=AzureIssuer(settings, options, account, keys.get),
            probe=AzureProbe(account, tokens, http),
            cutter=_cutter(settings, options, account, http, keys),
        )


async def _open_by_key(
    settings: StorageSettings, options: AzureOptions, identity: AccountKeyIdentity, account: Account
) -> Storage:
    """Open what reads and signs; a credential for a directory is nothing that an account key is used for."""
    keys = AccountKeys(settings.name, identity.account_key, settings.clock)
    store = await asyncio.to_thread(open_store, account, options.ca_file, by_key(keys))
    return Storage(
        name=settings.name,
        prefix=settings.prefix,
        reader=ObstoreReader(store),
        open_state=partial(ObstoreState, store),
        signer=_signer(settings, options, account, keys),
    )


def _signer(
    settings: StorageSettings, options: AzureOptions, account: Account, keys: DelegationKeys | AccountKeys
) -> AzureSigner | None:
    if settings.sessions is None or host_fault(settings.prefix):
        return None
    if isinstance(keys, AccountKeys):
        return AzureSigner(settings, options, account, lambda _: keys.get(), has_sessions=False)
    sessions = SessionKeys(settings.sessions, keys.ask)
    return AzureSigner(settings, options, account, sessions.get, has_sessions=True)


def _cutter(
    settings: StorageSettings, options: AzureOptions, account: Account, http: Call, keys: DelegationKeys
) -> AzureCutter:
    endpoint = options.revocation.endpoint if options.revocation else ""
    # The management API is an audience of its own.
    tokens = Tokens(options, settings.name, f"{endpoint}/.default", settings.clock)
    return AzureCutter(account, options.revocation, tokens, http, keys.forget)


vendor: Vendor = AzureVendor()
