"""Credentials of the running gateway, used on the store that they are for: it lets them read one table."""

from __future__ import annotations

import secrets
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.credentials import ContainerProvider
from botocore.exceptions import ClientError
from botocore.session import Session
from prometheus_client.parser import text_string_to_metric_families

from gateway.commands.bearer import hash_of
from tests.builders import numbers, rows
from tests.components import BOTO3, SEAWEEDFS
from tests.contract.http.client import Answer, fetch
from tests.deployments import Deployment, Settings

if TYPE_CHECKING:
    from tests.stores.seaweedfs import SeaweedFS

pytestmark = [pytest.mark.slow, pytest.mark.component(SEAWEEDFS)]

AUTH = {"Authorization": "Bearer token-of-ann"}
_CLIENT = Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"})


@dataclass(frozen=True)
class World:
    """A gateway that shares one of three tables, which lie side by side in a store."""

    deployment: Deployment
    bucket: str
    # Below which the tables lie, without a slash at the end.
    prefix: str

    def ask(self, method: str, call: str) -> Answer:
        table = "/shares/open/schemas/eu/tables/orders"
        return fetch(method, f"{self.deployment.base_url}{table}/{call}", AUTH)

    def credentials(self) -> dict[str, Any]:
        answer = self.ask("POST", "temporary-table-credentials")
        assert answer.status == 200, answer.body
        credentials: dict[str, Any] = answer.json()["credentials"]
        return credentials


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest, seaweedfs: SeaweedFS, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    kind: Callable[[Path, Settings], AbstractContextManager[Deployment]] = request.param
    directory, prefix = tmp_path_factory.mktemp("world"), f"contract-{secrets.token_hex(4)}"
    for name in ("orders", "orders2", "salaries"):
        _upload(seaweedfs, directory / name, f"{prefix}/{name}")
    with kind(directory / "run", _settings(seaweedfs, prefix)) as deployment:
        yield World(deployment, seaweedfs.bucket, prefix)


def client_of(credentials: dict[str, Any]) -> Any:
    """Return a client that knows of the store only what the gateway has told."""
    keys = credentials["awsTempCredentials"]
    return boto3.client(
        "s3",
        aws_access_key_id=keys["accessKeyId"],
        aws_secret_access_key=keys["secretAccessKey"],
        aws_session_token=keys["sessionToken"],
        region_name=keys["region"],
        endpoint_url=keys["endpoint"],
        config=_CLIENT,
    )


def read_table(client: Any, bucket: str, prefix: str) -> list[str]:
    """Read every object of a table, and return their names."""
    listed = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")["Contents"]
    for entry in listed:
        body = client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
        assert len(body) == entry["Size"]
    return [entry["Key"].removeprefix(f"{prefix}/") for entry in listed]


def is_denied(call: Callable[..., Any], **arguments: Any) -> bool:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    return bool(raised.value.response["Error"]["Code"] == "AccessDenied")


@pytest.mark.smoke
def test_the_credential_reads_the_table_and_is_denied_its_neighbours(world: World) -> None:
    credentials = world.credentials()
    client = client_of(credentials)
    own = f"{world.prefix}/orders"

    assert credentials["location"] == f"s3://{world.bucket}/{own}"
    assert "_delta_log/00000000000000000000.json" in read_table(client, world.bucket, own)
    for table in ("orders2", "salaries"):
        key = f"{world.prefix}/{table}/_delta_log/00000000000000000000.json"
        assert is_denied(client.get_object, Bucket=world.bucket, Key=key)
        prefix = f"{world.prefix}/{table}/"
        assert is_denied(client.list_objects_v2, Bucket=world.bucket, Prefix=prefix)
    for prefix in ("", world.prefix, f"{world.prefix}/", own[:-1]):
        assert is_denied(client.list_objects_v2, Bucket=world.bucket, Prefix=prefix)
    assert is_denied(client.put_object, Bucket=world.bucket, Key=f"{own}/new", Body=b"")
    key = f"{own}/_delta_log/00000000000000000000.json"
    assert is_denied(client.delete_object, Bucket=world.bucket, Key=key)


@pytest.mark.component(BOTO3)
def test_boto3_reads_the_table_with_what_it_takes_from_the_gateway_itself(world: World) -> None:
    table = f"{world.deployment.base_url}/shares/open/schemas/eu/tables/orders"
    provider = ContainerProvider(
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{table}/aws-credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": AUTH["Authorization"],
        }
    )
    session = Session()
    resolver = session.get_component("credential_provider")
    resolver.providers[:] = [provider]
    place = world.credentials()["awsTempCredentials"]
    client = boto3.Session(botocore_session=session).client(
        "s3", region_name=place["region"], endpoint_url=place["endpoint"], config=_CLIENT
    )

    assert read_table(client, world.bucket, f"{world.prefix}/orders")
    key = f"{world.prefix}/orders2/_delta_log/00000000000000000000.json"
    assert is_denied(client.get_object, Bucket=world.bucket, Key=key)


def test_metadata_advertises_what_the_credential_is_for(world: World) -> None:
    metadata = world.ask("GET", "metadata").lines()[1]["metaData"]
    assert metadata["location"] == world.credentials()["location"]
    assert metadata["accessModes"] == ["dir"]


@pytest.mark.smoke
def test_size_of_the_policy_that_the_store_tells_is_on_the_metrics_page(world: World) -> None:
    world.credentials()
    deployment = world.deployment
    # The process that asks the store.
    server = deployment.processes.get("vending", deployment.edge)

    with urllib.request.urlopen(f"{server.metrics_url}/metrics", timeout=60) as response:
        families = text_string_to_metric_families(response.read().decode())
    found = {
        (sample.name, *sample.labels.items()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == "sluice_sts_packed_policy_percent"
    }

    assert set(found) == {("sluice_sts_packed_policy_percent", ("storage", "lake"))}
    assert 0 < found.popitem()[1] <= 100


@pytest.mark.smoke
def test_what_was_handed_out_is_in_the_audit_log_and_its_secrets_are_nowhere(world: World) -> None:
    keys = world.credentials()["awsTempCredentials"]
    written = {
        file: file.read_bytes()
        for file in world.deployment.directory.rglob("*")
        if file.is_file() and file.suffix not in {".yaml", ".pem"}
    }
    audited = [line for file, text in written.items() if "audit" in file.parts for line in text.splitlines()]
    assert any(keys["accessKeyId"].encode() in line and b'"dir"' in line for line in audited)
    for text in written.values():
        assert keys["secretAccessKey"].encode() not in text
        assert keys["sessionToken"].encode() not in text


def _upload(store: SeaweedFS, directory: Path, prefix: str) -> None:
    builder = numbers(directory)
    builder.append(rows(range(3)))
    for file in builder.directory.rglob("*"):
        if file.is_file():
            store.put(store.bucket, f"{prefix}/{file.relative_to(builder.directory)}", file.read_bytes())


def _settings(store: SeaweedFS, prefix: str) -> Settings:
    def share(name: str, *tables: str) -> dict[str, Any]:
        entries = [
            {"name": table, "location": f"s3://{store.bucket}/{prefix}/{table}", "historyShared": True}
            for table in tables
        ]
        return {"name": name, "accessModes": ["dir"], "schemas": [{"name": "eu", "tables": entries}]}

    return {
        "version": 1,
        "shares": [share("open", "orders"), share("closed", "orders2", "salaries")],
        "recipients": [{"name": "ann", "tokens": [{"hash": hash_of("token-of-ann")}], "shares": ["open"]}],
        "storages": [
            {
                "name": "lake",
                "prefix": f"s3://{store.bucket}/{prefix}",
                "vendor": "s3",
                "options": {
                    "profile": "seaweedfs",
                    "endpoint": store.endpoint,
                    "identity": {
                        "kind": "keys",
                        "accessKeyId": store.gateway.access_key_id,
                        "secretAccessKey": {"value": store.gateway.secret_access_key},
                    },
                    "role": {"arn": store.role_arn},
                    # Its policies fold case, and no two of these tables differ by that alone.
                    "acceptCaseVariants": True,
                },
            }
        ],
    }
