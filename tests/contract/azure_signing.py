"""A recipient of URLs into an Azure storage account, who has an HTTP client and nothing else."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, TCPConnector
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient

from gateway.adapters.vendors import find_vendor
from gateway.domain.file_path import Paths, encode_path
from gateway.domain.location import Location, parse_location
from gateway.domain.window import Window
from gateway.ports import Signatures, Storage, StorageSettings, utcnow
from tests.contract.vendor import Fetched
from tests.fakes.sessions import FakeSessions
from tests.stores.azurite import ACCOUNT, Azurite

CONTAINER = "lake"
LIFE = timedelta(hours=1)
PREFIX = parse_location(f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net")


@dataclass(frozen=True, kw_only=True)
class AzureUrlHarness:
    storage: Storage
    sessions: FakeSessions
    client: ClientSession
    # What the table's owner writes with.
    owner: BlobServiceClient

    def location(self, directory: str) -> Location:
        return parse_location(f"{PREFIX.text}/{directory}")

    async def put(self, location: Location, path: str, content: bytes) -> None:
        blob = self.owner.get_blob_client(CONTAINER, _key(location, path))
        await asyncio.to_thread(blob.upload_blob, content, overwrite=True)

    async def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Fetched:
        # Without it, Azurite takes no writing for what it is, and says so before it looks at the signature.
        writing = {"x-ms-blob-type": "BlockBlob"} if method == "PUT" else {}
        async with self.client.request(method, url, headers={**writing, **(headers or {})}) as response:
            return Fetched(status=response.status, body=await response.read(), headers=dict(response.headers))

    async def sign(self, table: Location, *paths: str, window: Window | None = None) -> list[str]:
        assert self.storage.signer is not None
        encoded = [encode_path(path) for path in paths]
        signatures = await self.storage.signer.sign(table, Paths.of(encoded), window or window_from(utcnow()))
        return to_urls(encoded, signatures)


def window_from(start: datetime, life: timedelta = LIFE) -> Window:
    start = start.astimezone(UTC).replace(microsecond=0)
    return Window(start, start + life / 4, start + life)


def to_urls(encoded: list[str], signatures: Signatures) -> list[str]:
    pairs = zip(encoded, signatures.signatures.decode().split("\n"), strict=True)
    return [f"{signatures.origin}{path}?{signatures.query}{signature}" for path, signature in pairs]


def account_key(key: bytes) -> dict[str, object]:
    """Return the identity of whoever has the account's own key."""
    return {"kind": "accountKey", "accountKey": {"value": base64.b64encode(key).decode()}}


@asynccontextmanager
async def open_urls(
    azurite: Azurite, options: Mapping[str, object], *, ca: Path | None = None
) -> AsyncIterator[AzureUrlHarness]:
    """Open a storage that signs; what it is opened on keeps its blobs in Azurite."""
    vendor, sessions = find_vendor("azure"), FakeSessions()
    options = {**options, "caFile": str(ca)} if ca else options
    assert vendor.check(options) == []
    settings = StorageSettings(name="lake", prefix=PREFIX, options=options, public_url="", sessions=sessions)
    verify: dict[str, Any] = {"connection_verify": str(ca)} if azurite.origin.startswith("https:") else {}
    key = base64.b64encode(azurite.key).decode()
    trust = ssl.create_default_context(cafile=ca)
    async with (
        vendor.open(settings) as storage,
        ClientSession(connector=TCPConnector(ssl=trust)) as client,
    ):
        with BlobServiceClient(azurite.endpoint, credential=key, **verify) as owner:
            await asyncio.to_thread(_make_container, owner)
            yield AzureUrlHarness(storage=storage, sessions=sessions, client=client, owner=owner)


def _make_container(owner: BlobServiceClient) -> None:
    try:
        owner.create_container(CONTAINER)
    except ResourceExistsError:
        # Another test has made it.
        return


def _key(location: Location, path: str) -> str:
    return f"{location.path}/{path}" if location.path else path
