"""The vendors' contract, over each vendor that has a store here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from gateway.adapters.vendors import find_vendor
from gateway.domain.key import Key, Keys
from gateway.domain.location import Location, parse_location
from gateway.edge.handlers.files import FilesHandler
from gateway.ports import Storage, StorageSettings
from tests.contract.test_issuing import OnAzure, OnGcp, OnMinio, OnR2, OnSeaweedFS
from tests.contract.vendor import Fetched, Harness, ReaderContract, VendorContract
from tests.fakes.file_server import files_app


@dataclass
class LocalHarness:
    """A directory, and an edge that serves its files."""

    storage: Storage
    root: Path
    client: ClientSession

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.root}/{directory}")

    async def put(self, location: Location, path: str, content: bytes) -> None:
        await asyncio.to_thread(_write, Path("/", location.path, path), content)

    async def delete(self, location: Location, path: str) -> None:
        await asyncio.to_thread(Path("/", location.path, path).unlink)

    async def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Fetched:
        async with self.client.request(method, url, headers=headers) as response:
            return Fetched(status=response.status, body=await response.read(), headers=dict(response.headers))


@asynccontextmanager
async def local(directory: Path) -> AsyncIterator[Harness]:
    root = directory / "lake"
    root.mkdir()
    keys = Keys(current=Key(id="k1", secret=b"s" * 32))
    handler = FilesHandler(roots={"disk": root}.get, keys=keys, clock=lambda: datetime.now(UTC))
    async with TestServer(files_app(handler)) as server, ClientSession() as client:
        settings = StorageSettings(
            name="disk",
            prefix=parse_location(str(root)),
            public_url=str(server.make_url("/")),
            url_keys=keys,
        )
        async with find_vendor("local").open(settings) as storage:
            yield LocalHarness(storage=storage, root=root, client=client)


HARNESSES: dict[str, Callable[[Path], AbstractAsyncContextManager[Harness]]] = {"local": local}


@pytest.fixture(params=HARNESSES)
async def harness(request, tmp_path) -> AsyncIterator[Harness]:
    async with HARNESSES[request.param](tmp_path) as opened:
        yield opened


class TestVendor(VendorContract):
    """Each test of the contract, for each vendor."""


class TestSeaweedFS(OnSeaweedFS, ReaderContract):
    pass


class TestMinio(OnMinio, ReaderContract):
    pass


class TestAzure(OnAzure, ReaderContract):
    pass


class TestGcp(OnGcp, ReaderContract):
    pass


class TestR2(OnR2, ReaderContract):
    @pytest.fixture
    def mint(self):
        """Reading does not depend on who signs what is given to recipients."""
        return "local"


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
