"""Opens the container for reading logs, as the storage's own identity."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from obstore.store import AzureStore

from vendors.azure.account import Account
from vendors.azure.account_key import AccountKeys
from vendors.azure.delegation_key import TokenSource
from vendors.obstore_client import client_options, retry_config

if TYPE_CHECKING:
    from obstore.store import AzureAccessKey, AzureBearerToken

    Provide = Callable[[], Coroutine[Any, Any, AzureAccessKey | AzureBearerToken]]

# obstore asks again five minutes before this is over: a key that was replaced is noticed within a minute.
_BELIEVED: Final = timedelta(minutes=6)


def by_token(tokens: TokenSource) -> Provide:
    async def provide() -> AzureBearerToken:
        token = await tokens.get()
        return {"token": token.value, "expires_at": token.expires_at}

    return provide


def by_key(keys: AccountKeys) -> Provide:
    async def provide() -> AzureAccessKey:
        key = await keys.get()
        return {"access_key": key.text, "expires_at": key.read_at + _BELIEVED}

    return provide


def open_store(account: Account, ca_file: str | None, provide: Provide) -> AzureStore:
    """Return the container; every setting that obstore would look for in the environment is given."""
    return AzureStore(
        account.container,
        config={
            "account_name": account.name,
            "endpoint": account.endpoint,
            "use_emulator": False,
            "use_fabric_endpoint": False,
            "skip_signature": False,
        },
        client_options=client_options(allow_http=account.protocol != "https", ca_file=ca_file),
        retry_config=retry_config(),
        credential_provider=provide,
    )
