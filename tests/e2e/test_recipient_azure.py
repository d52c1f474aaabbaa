"""Engines take a shared access signature as the library gives it to them.

Azurite knows no directories, so the signature opens its whole container: this proves nothing about scope.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas

from gateway.ports import utcnow
from tests.components import AZURITE, DELTALAKE
from tests.e2e.recipient_lake import IDS, ORDERS, build
from tests.fakes.credential_gateway import CredentialGateway, Issued, serving
from tests.stores.azurite import Azurite

CONTAINER = "recipients"
DIRECTORY = "recipient/orders"

# npm brings Azurite.
pytestmark = [pytest.mark.component(AZURITE), pytest.mark.system]


class SasGateway(CredentialGateway):
    """A stand-in whose credentials are signatures."""

    def block(self, issued: Issued) -> dict[str, object]:
        return {"azureUserDelegationSas": {"sasToken": issued.credentials["sas"]}}


@pytest.fixture(scope="module")
def container(azurite, tmp_path_factory) -> Azurite:
    _upload(azurite, build(tmp_path_factory.mktemp("tables"))[ORDERS])
    service: Azurite = azurite
    return service


@pytest.fixture
def address(container, tmp_path) -> Iterator[str]:
    expires_at = utcnow() + timedelta(hours=1)
    sas = generate_container_sas(
        container.account,
        CONTAINER,
        _key(container),
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=expires_at,
    )
    location = f"abfss://{CONTAINER}@{container.account}.dfs.core.windows.net/{DIRECTORY}"
    gateway = SasGateway(
        mint=lambda _: {"sas": sas, "Expiration": expires_at},
        tables={ORDERS: location},
        token=secrets.token_urlsafe(32),
        region="",
        endpoint="",
    )
    with serving(gateway):
        profile = tmp_path / "reader.share"
        profile.write_text(gateway.profile)
        yield f"{profile}#{ORDERS}"


@pytest.mark.parametrize(
    "engine", [pytest.param("deltalake", marks=pytest.mark.component(DELTALAKE)), "polars"]
)
def test_an_engine_reads_with_a_signature(container, address, url_reader, engine):
    emulator = {"azure_endpoint": container.endpoint, "azure_allow_http": "true"}
    assert url_reader.call("ids_at", engine, address, emulator) == IDS[ORDERS]


def _upload(azurite: Azurite, table: Path) -> None:
    credential = {"account_name": azurite.account, "account_key": _key(azurite)}
    with BlobServiceClient(azurite.endpoint, credential=credential) as service:
        client = service.create_container(CONTAINER)
        for file in table.rglob("*"):
            if file.is_file():
                client.upload_blob(f"{DIRECTORY}/{file.relative_to(table)}", file.read_bytes())


def _key(azurite: Azurite) -> str:
    return base64.b64encode(azurite.key).decode()
