"""The vendors' contracts on reading and signing, over each vendor that has a store here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from gateway.adapters.vendors import find_vendor
from gateway.domain.key import Key, Keys
from gateway.domain.location import Location, parse_location
from gateway.edge.handlers.files import FilesHandler
from gateway.ports import Storage, StorageSettings
from tests.components import BOTO3, MINIO, R2_DOUBLE, SEAWEEDFS
from tests.contract.s3_urls import S3SignerContract, S3UrlHarness, opened_to_sign
from tests.contract.test_issuing import (
    OnAzure,
    OnGcp,
    OnMinio,
    OnR2,
    OnSeaweedFS,
    keys,
    minio_options,
    seaweedfs_options,
)
from tests.contract.vendor import Fetched, ReaderContract, SignerContract, SignerHarness, signed
from tests.doubles.r2 import R2, ApiToken
from tests.fakes.file_server import files_app
from tests.fakes.sessions import FakeSessions


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

    async def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Fetched:
        async with self.client.request(method, url, headers=headers) as response:
            return Fetched(status=response.status, body=await response.read(), headers=dict(response.headers))


class TestLocal(ReaderContract, SignerContract):
    @pytest_asyncio.fixture
    async def harness(self, tmp_path) -> AsyncIterator[SignerHarness]:
        root = tmp_path / "lake"
        root.mkdir()
        own = Keys(current=Key(id="k1", secret=b"s" * 32))
        handler = FilesHandler(roots={"disk": root}.get, keys=own, clock=lambda: datetime.now(UTC))
        async with TestServer(files_app(handler)) as server, ClientSession() as client:
            settings = StorageSettings(
                name="disk",
                prefix=parse_location(str(root)),
                public_url=str(server.make_url("/")),
                url_keys=own,
                sessions=FakeSessions(),
            )
            async with find_vendor("local").open(settings) as storage:
                yield LocalHarness(storage=storage, root=root, client=client)


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


class SessionSignerContract(S3SignerContract):
    """Tests over a fixture ``harness`` whose URLs are signed with sessions of the store's own."""

    async def test_url_carries_a_session_of_its_window_and_takes_no_other(self, harness):
        assert harness.storage.signer.has_sessions
        table = harness.location("sessions")
        await harness.put(table, "a", b"rows")
        now = datetime.now(UTC).replace(microsecond=0)
        (url,) = await signed(harness, table, "a", started_at=now)
        (earlier,) = await signed(harness, table, "a", started_at=now - timedelta(seconds=1))
        token, other = (
            next(pair for pair in one.split("&") if pair.startswith("X-Amz-Security-Token="))
            for one in (url, earlier)
        )

        assert token != other
        assert (await harness.fetch(url)).status == 200
        assert (await harness.fetch(earlier)).status == 200
        assert (await harness.fetch(url.replace(token, other))).status == 403
        assert (await harness.fetch(url.replace(f"&{token}", ""))).status == 403


@pytest.mark.integration
@pytest.mark.component(SEAWEEDFS, BOTO3)
class TestUrlsOfKeysOnSeaweedFS(S3SignerContract):
    @pytest_asyncio.fixture
    async def harness(self, seaweedfs):
        # They may write, too: it is the signature that does not let a URL do so.
        options = seaweedfs_options(seaweedfs) | {"identity": keys(seaweedfs.admin)}
        async with opened_to_sign("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            yield S3UrlHarness(storage, seaweedfs)


@pytest.mark.integration
@pytest.mark.component(SEAWEEDFS, BOTO3)
class TestUrlsOfARoleOnSeaweedFS(SessionSignerContract):
    @pytest_asyncio.fixture
    async def harness(self, seaweedfs):
        identity = keys(seaweedfs.gateway) | {"assumeRole": {"arn": seaweedfs.role_arn}}
        options = seaweedfs_options(seaweedfs) | {"identity": identity}
        async with opened_to_sign("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            yield S3UrlHarness(storage, seaweedfs)


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(MINIO, BOTO3)
class TestUrlsOfKeysOnMinio(S3SignerContract):
    @pytest_asyncio.fixture
    async def harness(self, minio):
        async with opened_to_sign("s3", f"s3://{minio.bucket}", minio_options(minio)) as storage:
            yield S3UrlHarness(storage, minio)


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(MINIO, BOTO3)
class TestUrlsOfARoleOnMinio(SessionSignerContract):
    @pytest_asyncio.fixture
    async def harness(self, minio):
        # It gives sessions of any role, and takes them for the user that asked.
        role = {"assumeRole": {"arn": "arn:aws:iam::000000000000:role/any"}}
        options = minio_options(minio) | {"identity": keys(minio.gateway) | role}
        async with opened_to_sign("s3", f"s3://{minio.bucket}", options) as storage:
            yield S3UrlHarness(storage, minio)


@pytest.mark.integration
@pytest.mark.component(R2_DOUBLE, BOTO3)
class TestUrlsOnR2(S3SignerContract):
    @pytest_asyncio.fixture
    async def harness(self, r2: R2):
        parent = r2.register(ApiToken())
        options = {"accountId": r2.account, "identity": keys(parent.keys), "endpoint": r2.endpoint}
        async with opened_to_sign("r2", "s3://lake", options) as storage:
            yield S3UrlHarness(storage, r2.store)


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
