"""The vendors' credentials, each on a store that was seen to refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from gateway.adapters.vendors import find_vendor
from gateway.domain.location import parse_location
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
from tests.contract.issuing import IssuerContract, shared
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
class TestSeaweedFS(IssuerContract):
    @pytest_asyncio.fixture
    async def harness(self, seaweedfs):
        options = seaweedfs_options(seaweedfs)
        async with opened("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            yield S3Harness(storage, seaweedfs)

    async def test_sibling_that_differs_by_case_stays_closed(self, seaweedfs):
        """This store's policies cannot say that: without the operator's word there is no credential."""
        options = seaweedfs_options(seaweedfs) | {"acceptCaseVariants": False}

        async with opened("s3", f"s3://{seaweedfs.bucket}", options) as storage:
            with pytest.raises(Unsupported, match="case"):
                await shared(S3Harness(storage, seaweedfs), "orders")


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(MINIO, BOTO3)
class TestMinio(IssuerContract):
    @pytest_asyncio.fixture
    async def harness(self, minio):
        async with opened("s3", f"s3://{minio.bucket}", minio_options(minio)) as storage:
            yield S3Harness(storage, minio)


@pytest.mark.integration
@pytest.mark.system
@pytest.mark.component(AZURE_DOUBLE, AZURITE)
class TestAzure(IssuerContract):
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
class TestGcp(IssuerContract):
    @pytest_asyncio.fixture
    async def harness(self, gcp):
        gcp.storage.make_bucket("lake")
        gateway = gcp.identity.register(
            ServiceAccount(
                email="gateway@test.iam.gserviceaccount.com",
                roles={"lake": ("roles/storage.objectAdmin",)},
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
@pytest.mark.parametrize("mint", ["local", "api"])
class TestR2(IssuerContract):
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
            yield S3Harness(storage, S3Store(endpoint=r2.endpoint, admin=parent.keys, region="auto"))
