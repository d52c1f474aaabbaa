"""Opens the container for reading logs, as the storage's own identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from obstore.store import AzureStore

from vendors.azure.account import Account
from vendors.azure.delegation_key import TokenSource
from vendors.obstore_client import client_options, retry_config

if TYPE_CHECKING:
    from obstore.store import AzureBearerToken


def open_store(account: Account, ca_file: str | None, tokens: TokenSource) -> AzureStore:
    """Return the container; every setting that obstore would look for in the environment is given."""

    async def provide() -> AzureBearerToken:
        token = await tokens.get()
        return {"token": token.value, "expires_at": token.expires_at}

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
