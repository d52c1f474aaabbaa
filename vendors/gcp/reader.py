"""Opens buckets of Google Cloud Storage as the storage's own identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from obstore.store import GCSStore

from vendors.gcp.config import GcpOptions
from vendors.gcp.identity import Identity
from vendors.obstore_client import client_options, retry_config

if TYPE_CHECKING:
    from obstore.store import GCSCredential


def open_store(options: GcpOptions, bucket: str, identity: Identity) -> GCSStore:
    """Return the bucket; it asks the identity for a token when it needs one."""

    async def token() -> GCSCredential:
        source = await identity.token()
        return {"token": source.value, "expires_at": source.expires_at}

    # obstore fills in what is not said here from the environment.
    return GCSStore(
        bucket,
        config={"base_url": options.storage_url, "skip_signature": False},
        client_options=client_options(
            allow_http=options.storage_url.startswith("http://"), ca_file=options.ca_file
        ),
        retry_config=retry_config(),
        credential_provider=token,
    )
