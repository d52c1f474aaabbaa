"""``sluice verify-storage`` on stores that enforce what they are told, and with a scope that leaks."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.commands.verification.check import Mark
from gateway.commands.verification.hands import Hands
from gateway.commands.verification.inspection import Inspection, Inspector, Places
from gateway.commands.verification.report import Report
from gateway.commands.verify_storage import Verifier
from gateway.config.schema import Config
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.ports import CredentialIssuer, StorageSettings
from tests.components import AZURE_DOUBLE, AZURITE, FAKE_GCS_SERVER, GCP_DOUBLE, MINIO, R2_DOUBLE, SEAWEEDFS
from tests.doubles.azure_oauth import Principal
from tests.doubles.gcp_identity import ServiceAccount
from tests.doubles.r2 import ApiToken
from tests.stores.s3 import Keys
from vendors.s3 import vendor

TABLES = ("orders", "orders_old", "customers")


def identity(keys: Keys) -> dict[str, Any]:
    return {
        "kind": "keys",
        "accessKeyId": keys.access_key_id,
        "secretAccessKey": {"value": keys.secret_access_key},
    }


def seaweedfs_options(store, keys: Keys) -> dict[str, Any]:
    """Return the options of a gateway; as the administrator it may write, and narrows sessions of its own."""
    common = {"endpoint": store.endpoint, "identity": identity(keys), "acceptCaseVariants": True}
    if keys == store.admin:
        can = {"role": "optional", "inlinePolicy": True, "foldsCase": True}
        return common | {"profile": "custom", "capabilities": can}
    return common | {"profile": "seaweedfs", "role": {"arn": store.role_arn}}


def minio_options(store) -> dict[str, Any]:
    return {"profile": "minio", "endpoint": store.endpoint, "identity": identity(store.admin)}


def verify(
    directory: Path, bucket: str, options: dict[str, Any], *arguments: str
) -> tuple[int, dict[str, Any]]:
    """Run the command in a process of its own, on a storage with three tables."""
    tables = [
        {"name": name, "location": f"s3://{bucket}/shared/{name}", "historyShared": True} for name in TABLES
    ]
    settings = {
        "allowAnonymous": True,
        "stateDir": str(directory),
        "shares": [
            {"name": "s", "accessModes": ["dir"], "schemas": [{"name": "s", "tables": tables}]},
        ],
        "storages": [{"name": "lake", "prefix": f"s3://{bucket}/shared", "vendor": "s3", "options": options}],
    }
    file = directory / "server.yaml"
    file.write_text(yaml.safe_dump(settings))
    result = subprocess.run(
        [sys.executable, "-m", "gateway", "verify-storage", "--config", file, "--format", "json", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in result.stderr
    (storage,) = json.loads(result.stdout)["storages"]
    return result.returncode, storage


def marks(storage: dict[str, Any]) -> dict[str, str]:
    return {check["check"]: check["mark"] for check in storage["checks"]}


@pytest.mark.component(SEAWEEDFS)
def test_seaweedfs_is_proved_on_probe_objects_that_are_gone_afterwards(seaweedfs, tmp_path):
    bucket = seaweedfs.make_bucket("lake-verify-probe")

    status, storage = verify(tmp_path, bucket, seaweedfs_options(seaweedfs, seaweedfs.admin))

    assert set(marks(storage).values()) == {"proved"}, storage
    assert status == 0
    assert storage["triedOn"] == "probe objects"
    assert "read sibling by name (probe-sibling)" in marks(storage)
    assert seaweedfs.keys(bucket) == []


@pytest.mark.component(SEAWEEDFS)
def test_seaweedfs_is_proved_on_tables_where_the_gateway_may_not_write(seaweedfs, tmp_path):
    bucket = seaweedfs.make_bucket("lake-verify-tables")
    for table in TABLES:
        seaweedfs.put(bucket, f"shared/{table}/_delta_log/0.json")

    status, storage = verify(tmp_path, bucket, seaweedfs_options(seaweedfs, seaweedfs.gateway))

    assert status == 0, storage
    assert storage["triedOn"] == "tables"
    assert marks(storage)["read sibling by name (orders_old)"] == "proved"
    assert seaweedfs.keys(bucket) == sorted(f"shared/{table}/_delta_log/0.json" for table in TABLES)


@pytest.mark.component(SEAWEEDFS)
def test_identity_that_the_role_does_not_trust_is_told_of(seaweedfs, tmp_path):
    bucket = seaweedfs.make_bucket("lake-verify-tables")

    status, storage = verify(tmp_path, bucket, seaweedfs_options(seaweedfs, seaweedfs.stranger))

    assert status == 2
    assert marks(storage)["issue a credential"] == "not proved"


def test_store_that_does_not_answer_proves_nothing(tmp_path):
    options = {
        "profile": "minio",
        "endpoint": "http://127.0.0.1:9",
        "identity": identity(Keys(access_key_id="a", secret_access_key="b")),
    }
    status, storage = verify(tmp_path, "lake", options)
    assert status == 2
    assert set(marks(storage).values()) == {"not proved"}


@pytest.mark.component(MINIO)
@pytest.mark.system
def test_minio_is_proved_on_probe_objects(minio, tmp_path):
    bucket = minio.make_bucket("verify-probe")

    status, storage = verify(tmp_path, bucket, minio_options(minio))

    assert set(marks(storage).values()) == {"proved"}, storage
    assert status == 0
    assert minio.keys(bucket) == []


@pytest.mark.component(AZURE_DOUBLE, AZURITE)
@pytest.mark.system
async def test_azure_is_proved_on_probe_objects(azure):
    azure.make_container("lake")
    gateway = azure.login.register(Principal(secret="its-secret", may_write=True))
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

    report = await verify_here("azure", f"abfss://lake@{azure.name}.dfs.core.windows.net/shared", options)

    assert report.exit_status == 0, report.to_text()


@pytest.mark.component(GCP_DOUBLE, FAKE_GCS_SERVER)
@pytest.mark.system
async def test_gcp_is_proved_on_probe_objects(gcp):
    gcp.storage.make_bucket("lake")
    roles: dict[str, tuple[str, ...]] = {"lake": ("roles/storage.objectAdmin",)}
    gateway = gcp.identity.register(ServiceAccount(email="gateway@test.iam.gserviceaccount.com", roles=roles))
    options = {
        "identity": {
            "kind": "serviceAccount",
            "key": {"value": json.dumps(gcp.identity.key_file(gateway))},
        },
        "stsEndpoint": gcp.origin,
        "storageEndpoint": gcp.origin,
    }

    report = await verify_here("gcp", "gs://lake/shared", options)

    assert report.exit_status == 0, report.to_text()


@pytest.mark.component(R2_DOUBLE, SEAWEEDFS)
async def test_r2_is_proved_on_probe_objects(r2):
    r2.store.make_bucket("lake-verify-r2")
    token = r2.register(ApiToken())
    options = {
        "accountId": r2.account,
        "identity": identity(token.keys),
        "endpoint": r2.endpoint,
    }

    report = await verify_here("r2", "s3://lake-verify-r2/shared", options)

    assert report.exit_status == 0, report.to_text()


async def verify_here(vendor: str, prefix: str, options: dict[str, Any]) -> Report:
    """Verify a storage in this process, which its double may run in."""
    entry = {"name": "lake", "prefix": prefix, "vendor": vendor, "options": options}
    config = Config.model_validate({"storages": [entry]})
    return await Verifier(config=config).verify(config.storages or ())


class WiderIssuer:
    """Issues for the parent of what it is asked for, as a scope without its last segment would."""

    def __init__(self, issuer: CredentialIssuer) -> None:
        self.names_recipients = issuer.names_recipients
        self._issuer = issuer

    async def issue(self, scope: Scope):
        above = parse_location(scope.location.text.rpartition("/")[0])
        return await self._issuer.issue(replace(scope, location=above))


@pytest.mark.component(SEAWEEDFS)
async def test_scope_that_is_too_wide_is_found(seaweedfs):
    bucket = seaweedfs.make_bucket("lake-verify-wide")

    inspection = await inspect_wider(bucket, seaweedfs_options(seaweedfs, seaweedfs.admin))

    breaches = {row.check for row in inspection.rows if row.mark is Mark.BREACH}
    assert breaches == {
        "read sibling by name (probe-sibling)",
        "list sibling by name (probe-sibling)",
        "read sibling by name (probe2)",
        "list sibling by name (probe2)",
        "read neighbour (neighbour)",
        "list neighbour (neighbour)",
        "read object beside (probe.txt)",
        "list by name, without the slash",
        "list parent",
    }
    assert not [row for row in inspection.rows if row.mark is Mark.NOT_PROVED]
    assert seaweedfs.keys(bucket) == []


async def inspect_wider(bucket: str, options: dict[str, Any]) -> Inspection:
    prefix = parse_location(f"s3://{bucket}/shared")
    settings = StorageSettings(name="lake", prefix=prefix, options=options, public_url="")
    async with vendor.open(settings) as storage:
        assert storage.issuer is not None
        assert storage.probe is not None
        inspector = Inspector(
            hands=Hands(storage, WiderIssuer(storage.issuer), storage.probe),
            places=Places(prefix=prefix, folds_case=True),
            life=storage.credential_life,
            progress=lambda _: None,
        )
        return await inspector.inspect()
