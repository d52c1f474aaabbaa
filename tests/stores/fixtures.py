"""One store of each kind for a whole test run, and a double before it for each test that asks.

The stores' modules are imported late: a run of the fast tests needs no SDK.
"""

# ruff: noqa: PLC0415
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.doubles.azure import StorageAccount
    from tests.doubles.gcp import GoogleCloud
    from tests.doubles.r2 import R2
    from tests.stores.azurite import Azurite
    from tests.stores.fake_gcs import FakeGcs
    from tests.stores.minio import Minio
    from tests.stores.seaweedfs import SeaweedFS


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory) -> Iterator[SeaweedFS]:
    from tests.stores.seaweedfs import running_seaweedfs

    with running_seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as store:
        yield store


@pytest.fixture(scope="session")
def minio(tmp_path_factory) -> Iterator[Minio]:
    from tests.stores.minio import running_minio

    with running_minio(tmp_path_factory.mktemp("minio")) as store:
        yield store


@pytest.fixture(scope="session")
def azurite(tmp_path_factory) -> Iterator[Azurite]:
    from tests.stores.azurite import running_azurite

    with running_azurite(tmp_path_factory.mktemp("azurite")) as service:
        yield service


@pytest.fixture(scope="session")
def fake_gcs(tmp_path_factory) -> Iterator[FakeGcs]:
    from tests.stores.fake_gcs import running_fake_gcs

    with running_fake_gcs(tmp_path_factory.mktemp("fake-gcs")) as server:
        yield server


@pytest.fixture
def azure(azurite, tmp_path) -> Iterator[StorageAccount]:
    """A storage account with a hierarchical namespace, that forgets its keys after each test."""
    from tests.doubles.azure import running_azure

    with running_azure(tmp_path / "azure", azurite) as account:
        yield account


@pytest.fixture
def gcp(fake_gcs) -> Iterator[GoogleCloud]:
    """Cloud Storage and the services that give out its tokens, with no account in it yet."""
    from tests.doubles.gcp import running_gcp

    with running_gcp(fake_gcs) as cloud:
        yield cloud


@pytest.fixture
def r2(seaweedfs) -> Iterator[R2]:
    """R2 and Cloudflare's API before it, with no token in it yet."""
    from tests.doubles.r2 import running_r2

    with running_r2(seaweedfs) as service:
        yield service
