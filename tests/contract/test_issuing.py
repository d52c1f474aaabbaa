"""The vendors' credentials, each on a store that was seen to refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from gateway.adapters.vendors import find_vendor
from gateway.domain.location import Location, parse_location
from gateway.errors import Unsupported
from gateway.ports import Storage, StorageSettings
from tests.components import (
    AZURE_DOUBLE,
    AZURITE,
    BOTO3,
    FAKE_GCS_SERVER,
    GCP_DOUBLE,
    MINIO,
    R2_DOUBLE,
    SEAWEEDFS,
)
from tests.contract.azure_recipient import AzureHarness
from tests.contract.gcp_recipient import GcpHarness
from tests.contract.issuing import IssuerContract, S3IssuerContract, StsIssuerContract, shared
from tests.contract.s3_recipient import S3Harness
from tests.doubles.azure_oauth import Principal
from tests.doubles.gcp_identity import ServiceAccount
from tests.doubles.r2 import R2, ApiToken
from tests.stores.minio import Minio
from tests.stores.s3 import Keys, S3Store
from tests.stores.seaweedfs import SeaweedFS


@asynccontextmanager
async def opened(vendor: str, prefix: str, options: dict[str, object]) -> AsyncIterator[Storage]:
    assert find_vendor(vendor).check(options) == []
    settings = StorageSettings(
        name="lake", prefix=parse_location(prefix), options=options, public_url="http://127.0.0.1"
    )
    async with find_vendor(vendor).open(settings) as storage:
        yield storage


def keys(own: Keys) -> dict[str, object]:
    return {
        "kind": "keys",
        "accessKeyId": own.access_key_id,
        "secretAccessKey": {"value": own.secret_access_key},
    }


def seaweedfs_options(store: SeaweedFS) -> dict[str, object]:
    return {
        "profile": "seaweedfs",
        "endpoint": store.endpoint,
        "region": store.region,
        "identity": keys(store.gateway),
        "role": {"arn": store.role_arn},
        # Its policies do not tell upper from lower case: directories of these tests differ otherwise, too.
        "acceptCaseVariants": True,
    }


def minio_options(store: Minio) -> dict[str, object]:
    return {
        "profile": "minio",
        "endpoint": store.endpoint,
        "region": store.region,
        "identity": keys(store.gateway),
    }


@pytest.mark.integration
@pytest.mark.component(SEAWEEDFS, BOTO3)
class OnSeaweedFS:
    @pytest_asyncio.fixture
    async def harness(self, seaweedfs):
        options = seaweedfs_options(seaweedfs)
        async with opened("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            yield S3Harness(storage, seaweedfs, seaweedfs.role_arn)


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(MINIO, BOTO3)
class OnMinio:
    @pytest_asyncio.fixture
    async def harness(self, minio):
        async with opened("s3", f"s3://{minio.bucket}", minio_options(minio)) as storage:
            yield S3Harness(storage, minio)


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class OnAzure:
    @pytest_asyncio.fixture
    async def harness(self, azure):
        azure.make_container("lake")
        gateway = azure.login.register(Principal(secret="its-secret"))
        options = {
            "identity": {
                "kind": "clientSecret",
                "tenantId": azure.login.tenant,
                "clientId": gateway.client_id,
                "clientSecret": {"value": "its-secret"},
            },
            "authority": azure.login.origin,
            "blobEndpoint": azure.endpoint,
            "caFile": str(azure.ca),
            "hierarchicalNamespace": True,
        }
        prefix = f"abfss://lake@{azure.name}.dfs.core.windows.net"
        async with opened("azure", prefix, options) as storage:
            yield AzureHarness(storage, azure, "lake")


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER)
class OnGcp:
    @pytest_asyncio.fixture
    async def harness(self, gcp):
        gcp.storage.make_bucket("lake")
        may_all = ("roles/storage.objectAdmin",)
        gateway = gcp.identity.register(
            ServiceAccount(
                email="gateway@test.iam.gserviceaccount.com",
                roles={"lake": may_all, "lake-other": may_all},
            )
        )
        options = {
            "identity": {
                "kind": "serviceAccount",
                "key": {"value": json.dumps(gcp.identity.key_file(gateway))},
            },
            "stsEndpoint": gcp.origin,
            "storageEndpoint": gcp.origin,
        }
        async with opened("gcp", "gs://lake", options) as storage:
            yield GcpHarness(storage, gcp)


@pytest.mark.integration
@pytest.mark.component(R2_DOUBLE, BOTO3)
class OnR2:
    @pytest.fixture(params=["local", "api"])
    def mint(self, request):
        return request.param

    @pytest_asyncio.fixture
    async def harness(self, r2: R2, mint):
        parent = r2.register(ApiToken())
        options: dict[str, object] = {
            "accountId": r2.account,
            "identity": keys(parent.keys),
            "mint": mint,
            "endpoint": r2.endpoint,
            "apiEndpoint": f"{r2.endpoint}/client/v4",
        }
        if mint == "api":
            options["apiToken"] = {"value": parent.value}
        async with opened("r2", "s3://lake", options) as storage:
            yield R2Harness(storage, r2, parent)


class R2Harness(S3Harness):
    """R2 lists no buckets here: the store behind it makes another."""

    def __init__(self, storage: Storage, service: R2, parent: ApiToken) -> None:
        super().__init__(storage, S3Store(endpoint=service.endpoint, admin=parent.keys, region="auto"))
        self._behind = service.store

    def elsewhere(self, directory: str) -> Location:
        return parse_location(f"s3://{self._behind.make_bucket('lake-other')}/{directory}")


class TestSeaweedFS(OnSeaweedFS, StsIssuerContract):
    async def test_sibling_that_differs_by_case_stays_closed(self, seaweedfs):
        """This store's policies cannot say that: without the operator's word there is no credential."""
        options = seaweedfs_options(seaweedfs) | {"acceptCaseVariants": False}

        async with opened("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            with pytest.raises(Unsupported, match="case"):
                await shared(S3Harness(storage, seaweedfs), "orders")


class TestMinio(OnMinio, StsIssuerContract):
    pass


class TestAzure(OnAzure, IssuerContract):
    pass


class TestGcp(OnGcp, IssuerContract):
    pass


class TestR2(OnR2, S3IssuerContract):
    pass
