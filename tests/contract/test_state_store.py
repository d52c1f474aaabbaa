"""The contract of state stores, over each that is here."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gateway.domain.location import Location, parse_location
from gateway.ports import StateStore, Storage
from tests.components import AZURITE, MINIO, R2_DOUBLE, SEAWEEDFS
from tests.contract.azure_signing import account_key, open_urls
from tests.contract.state_store import ConditionsContract, StateStoreContract
from tests.contract.test_issuing import OnR2, keys, minio_options, opened, seaweedfs_options
from tests.fakes.state_store import FakeStateStore


class TestFake(StateStoreContract):
    @pytest.fixture
    def store(self):
        return FakeStateStore()


class TestLocal(StateStoreContract):
    @pytest_asyncio.fixture
    async def store(self, tmp_path) -> AsyncIterator[StateStore]:
        async with opened("local", str(tmp_path), {}) as storage:
            yield _opened(storage, parse_location(f"{tmp_path}/state"))


@pytest.mark.integration
@pytest.mark.component(SEAWEEDFS)
class TestSeaweedFS(StateStoreContract):
    @pytest_asyncio.fixture
    async def store(self, seaweedfs) -> AsyncIterator[StateStore]:
        options = seaweedfs_options(seaweedfs) | {"identity": keys(seaweedfs.admin)}
        async with opened("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            yield _opened(storage, _fresh(f"s3://{seaweedfs.bucket}"))


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(MINIO)
class TestMinio(StateStoreContract):
    @pytest_asyncio.fixture
    async def store(self, minio) -> AsyncIterator[StateStore]:
        async with opened("s3", f"s3://{minio.bucket}", minio_options(minio)) as storage:
            yield _opened(storage, _fresh(f"s3://{minio.bucket}"))


@pytest.mark.component(R2_DOUBLE)
class TestR2(OnR2, ConditionsContract):
    """Over the double, whose listings and limits are those of the store behind it."""

    @pytest.fixture
    def mint(self):
        return "local"

    @pytest.fixture
    def store(self, harness):
        return harness.storage.open_state(_fresh("s3://lake"))


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURITE)
class TestAzurite(StateStoreContract):
    @pytest_asyncio.fixture
    async def store(self, azurite) -> AsyncIterator[StateStore]:
        options = {"identity": account_key(azurite.key), "blobEndpoint": azurite.endpoint}
        async with open_urls(azurite, options) as harness:
            yield _opened(harness.storage, _fresh(harness.storage.prefix.text))


def _fresh(bucket: str) -> Location:
    return parse_location(f"{bucket}/{secrets.token_hex(6)} 50%/state")


def _opened(storage: Storage, location: Location) -> StateStore:
    assert storage.open_state is not None
    return storage.open_state(location)
