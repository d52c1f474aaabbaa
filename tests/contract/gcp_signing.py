"""A recipient of signed URLs of Google Cloud Storage, before a double that verifies them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientSession, DummyCookieJar
from yarl import URL

from gateway.domain.location import Location, parse_location
from gateway.ports import Storage, StorageSettings
from tests.contract.vendor import Fetched
from tests.doubles.gcp import GoogleCloud
from tests.doubles.gcp_identity import ServiceAccount
from tests.fakes.sessions import FakeSessions
from vendors.gcp import GcpVendor

BUCKET = "lake"
# It may write, too: it is the signature that does not let a URL do so.
ADMIN: dict[str, tuple[str, ...]] = {BUCKET: ("roles/storage.objectAdmin",)}


@dataclass(kw_only=True)
class GcpUrlHarness:
    storage: Storage
    cloud: GoogleCloud
    client: ClientSession

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.storage.prefix.text}/{directory}")

    async def put(self, location: Location, path: str, content: bytes) -> None:
        key = f"{location.path}/{path}" if location.path else path
        await asyncio.to_thread(self.cloud.storage.put, location.authority, key, content)

    async def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Fetched:
        # As it is: Google takes no other spelling of a path than the one that was signed.
        async with self.client.request(method, URL(url, encoded=True), headers=headers) as response:
            return Fetched(status=response.status, body=await response.read(), headers=dict(response.headers))


@asynccontextmanager
async def opened_to_sign(
    cloud: GoogleCloud,
    options: Mapping[str, object],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncIterator[GcpUrlHarness]:
    """Open a storage on the double, in a process that signs."""
    cloud.storage.make_bucket(BUCKET)
    vendor, prefix = GcpVendor(sleep), parse_location(f"gs://{BUCKET}")
    options = {"storageEndpoint": cloud.origin, "iamEndpoint": cloud.origin, **options}
    assert vendor.check(options) == []
    assert vendor.check_url(options, prefix) == []
    settings = StorageSettings(
        name="lake",
        prefix=prefix,
        options=options,
        public_url="http://127.0.0.1",
        sessions=FakeSessions(),
        clock=cloud.clock,
    )
    async with vendor.open(settings) as storage, ClientSession(cookie_jar=DummyCookieJar()) as client:
        yield GcpUrlHarness(storage=storage, cloud=cloud, client=client)


def account(cloud: GoogleCloud, name: str, *may_sign_as: str, reads: bool = True) -> ServiceAccount:
    return cloud.identity.register(
        ServiceAccount(
            email=email(name),
            roles=ADMIN if reads else {},
            may_impersonate=tuple(email(other) for other in may_sign_as),
        )
    )


def email(name: str) -> str:
    return f"{name}@test.iam.gserviceaccount.com"


def key_of(cloud: GoogleCloud, holder: ServiceAccount) -> dict[str, object]:
    """Return the identity that a key makes the gateway."""
    return {"kind": "serviceAccount", "key": {"value": json.dumps(cloud.identity.key_file(holder))}}
