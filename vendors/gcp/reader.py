"""Reads the logs of tables on Google Cloud Storage, as the storage's own identity."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obstore.store import GCSStore

from vendors.gcp.config import GcpOptions
from vendors.gcp.identity import Identity
from vendors.obstore_reader import ObstoreReader

if TYPE_CHECKING:
    from obstore.store import ClientConfig, GCSCredential

_TIMEOUT: Final = timedelta(seconds=30)


def open_reader(options: GcpOptions, bucket: str, identity: Identity) -> ObstoreReader:
    """Return a reader of the bucket; it asks the identity for a token when it needs one."""

    async def token() -> GCSCredential:
        source = await identity.token()
        return {"token": source.value, "expires_at": source.expires_at}

    # obstore fills in what is not said here from the environment.
    store = GCSStore(
        bucket,
        config={"base_url": options.storage_url, "skip_signature": False},
        client_options=_client(options),
        credential_provider=token,
    )
    return ObstoreReader(store)


def _client(options: GcpOptions) -> ClientConfig:
    client: ClientConfig = {
        "allow_http": options.storage_url.startswith("http://"),
        "timeout": _TIMEOUT,
    }
    if options.ca_file is not None:
        client["root_certificate"] = Path(options.ca_file).read_bytes()
    return client
