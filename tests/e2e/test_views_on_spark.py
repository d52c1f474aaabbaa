"""Views from end to end: a worker's Spark makes them on an object store, each recipient reads its own rows.

Nothing here stands in for anything: the gateway and the worker are processes of their own, the store enforces
what credentials are scoped to, and the readers are recipients' own.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gateway.commands.bearer import hash_of
from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from tests.components import ALL_IN_ONE, CLIENT, SEAWEEDFS, SPARK_PIPELINE
from tests.deployments import Deployment, all_in_one
from tests.e2e.recipient_lake import RecipientProcess, recipient
from tests.http import Answer, request
from tests.spark import FOR_SPEED
from tests.stores.s3 import Keys
from tests.stores.seaweedfs import SeaweedFS, running_seaweedfs
from tests.waiting import eventually

pytestmark = [
    pytest.mark.component(SEAWEEDFS),
    pytest.mark.component(SPARK_PIPELINE),
    pytest.mark.component(ALL_IN_ONE),
    pytest.mark.component(CLIENT),
    # Java and Maven come from apt.
    pytest.mark.system,
]

ROLE_ARN = "arn:aws:iam::000000000000:role/ViewReader"
SLUICE = Path(sys.prefix) / "bin" / "sluice"
VIEW = "sales.shop.mine"
REGIONS = {"emea-shop": "emea", "apac-shop": "apac"}
# A column that the view does not have, and a row that no recipient is shown.
HIDDEN = f"hidden-{secrets.token_hex(8)}"
FIELDS = [Field("id", "long"), Field("region", "string"), Field("note", "string")]
ROWS = [
    {"id": number, "region": ("emea", "apac", "nowhere")[number % 3], "note": HIDDEN} for number in range(60)
]
WAIT_SECONDS = 600


class Lake:
    """The view's source, which goes on being written to, and all that lies on the store."""

    def __init__(self, store: SeaweedFS, directory: Path) -> None:
        self.store = store
        self.source, self.views = f"lake-src-{secrets.token_hex(4)}", f"lake-views-{secrets.token_hex(4)}"
        for bucket in (self.source, self.views):
            store.client(store.admin).create_bucket(Bucket=bucket)
        self._directory = directory
        self.table = TableBuilder(directory, FIELDS).append(ROWS, files=3)
        self.upload()

    def upload(self) -> None:
        for file in sorted(self._directory.rglob("*")):
            if file.is_file():
                self.store.put(self.source, f"orders/{file.relative_to(self._directory)}", file.read_bytes())

    def keys(self, below: str = "") -> list[str]:
        pages = self.store.client(self.store.admin).get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.views, Prefix=below)
        return [entry["Key"] for page in found for entry in page.get("Contents", ())]

    def read(self, key: str) -> bytes:
        answer = self.store.client(self.store.admin).get_object(Bucket=self.views, Key=key)
        content: bytes = answer["Body"].read()
        return content


class Share:
    """The gateway as one recipient sees it."""

    def __init__(self, deployment: Deployment, name: str, token: str) -> None:
        self.token = token
        self.config = deployment.edge.config_file
        self._base = f"{deployment.base_url}/shares/sales"
        self.profile = deployment.directory / f"{name}.share"
        content = {"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token}
        self.profile.write_text(json.dumps(content))

    @property
    def address(self) -> str:
        return f"{self.profile}#{VIEW}"

    def post(self, path: str, body: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        url = f"{self._base}/schemas/shop/tables/mine/{path}"
        return request(
            url, token=self.token, method="POST", body=json.dumps(dict(body or {})).encode(), **headers
        )

    def wait_for_refresh(self) -> list[dict[str, Any]]:
        """Query as clients that can wait do, and return the answer's lines."""
        first = _lines(self.post("query", delta_sharing_capabilities="asyncquery=true"))
        if "queryStatus" not in first[0]:
            return first
        query = f"queries/{first[0]['queryStatus']['queryId']}"

        def result() -> list[dict[str, Any]] | None:
            lines = _lines(self.post(query))
            return None if "queryStatus" in lines[0] else lines

        return eventually(result, "the view is refreshed", seconds=WAIT_SECONDS, pause=0.2)

    def credentials(self) -> tuple[str, Keys]:
        """Return the directory that the recipient is given, and the keys to it."""
        answer = self.post("temporary-table-credentials")
        assert answer.status == 200, answer.body
        found = answer.json["credentials"]
        keys = found["awsTempCredentials"]
        return found["location"], Keys(
            access_key_id=keys["accessKeyId"],
            secret_access_key=keys["secretAccessKey"],
            session_token=keys["sessionToken"],
        )

    def listed_location(self) -> str:
        (table,) = [
            table
            for table in request(f"{self._base}/all-tables", token=self.token).json["items"]
            if table["name"] == "mine"
        ]
        location: str = table.get("location", "")
        return location


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Iterator[Lake]:
    # Of its own: here one identity signs, writes and assumes the role.
    trust = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"AWS": "*"}}
    role = {
        "roleName": ROLE_ARN.rpartition("/")[2],
        "roleArn": ROLE_ARN,
        "trustPolicy": {"Version": "2012-10-17", "Statement": [trust]},
        "attachedPolicies": ["ReadLake"],
    }
    with running_seaweedfs(tmp_path_factory.mktemp("seaweedfs"), iam={"roles": [role]}) as store:
        yield Lake(store, tmp_path_factory.mktemp("source") / "orders")


@pytest.fixture(scope="module")
def shares(lake, tmp_path_factory) -> Iterator[dict[str, Share]]:
    tokens = {name: secrets.token_urlsafe(32) for name in REGIONS}
    directory = tmp_path_factory.mktemp("gateway")
    with all_in_one(directory, _settings(lake, directory, tokens)) as deployment:
        yield {name: Share(deployment, name, token) for name, token in tokens.items()}


@pytest.fixture(scope="module")
def worker(shares, tmp_path_factory) -> Iterator[Path]:
    """Run a worker beside the gateway, and give the file of what it says."""
    config = shares["emea-shop"].config
    log = tmp_path_factory.mktemp("worker") / "log"
    with _running_worker(config, log):
        yield log


@pytest.fixture(scope="module")
def made(shares, worker) -> dict[str, list[dict[str, Any]]]:
    """Return what each recipient is answered once its rows are made."""
    return {name: share.wait_for_refresh() for name, share in shares.items()}


@pytest.fixture(scope="module")
def reader() -> Iterator[RecipientProcess]:
    with recipient() as process:
        yield process


def test_without_a_worker_who_cannot_wait_is_told_when_to_come_back(shares):
    answer = shares["emea-shop"].post("query")
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert HIDDEN.encode() not in answer.body


@pytest.mark.parametrize("mode", ["url", "dir"])
@pytest.mark.parametrize("name", REGIONS)
def test_each_recipient_reads_its_own_rows(made, shares, reader, name, mode):
    found = reader.call("rows", "polars", shares[name].address, mode=mode)
    assert found["columns"] == ["id", "region"]
    assert found["rows"] == _expected(REGIONS[name], ROWS)


def test_directories_hold_nothing_that_is_not_shown(made, lake):
    keys = lake.keys()
    assert keys
    for key in keys:
        content = lake.read(key)
        assert HIDDEN.encode() not in content
        assert b"nowhere" not in content
        assert lake.source.encode() not in content


def test_keys_of_one_recipient_do_not_open_the_others_directory(made, shares, lake):
    (own, keys), (other, _) = shares["emea-shop"].credentials(), shares["apac-shop"].credentials()
    assert own != other
    client = lake.store.client(keys)
    assert client.list_objects_v2(Bucket=lake.views, Prefix=_path(own))["KeyCount"] > 0
    attempts = [
        lambda: client.list_objects_v2(Bucket=lake.views, Prefix=_path(other)),
        lambda: client.list_objects_v2(Bucket=lake.views, Prefix="mine/"),
        lambda: client.get_object(Bucket=lake.views, Key=lake.keys(_path(other))[0]),
        lambda: client.get_object(Bucket=lake.source, Key=f"orders/_delta_log/{0:020d}.json"),
    ]
    for attempt in attempts:
        with pytest.raises(client.exceptions.ClientError) as refusal:
            attempt()
        assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_recipient_cannot_ask_for_the_others_directory_or_answer(made, shares):
    emea, apac = shares["emea-shop"], shares["apac-shop"]
    assert emea.listed_location() == emea.credentials()[0] != apac.credentials()[0]
    answer = emea.post("temporary-table-credentials", {"location": apac.credentials()[0]})
    assert answer.status == 400
    body = {"idempotencyKey": secrets.token_hex(8)}

    def pending() -> str | None:
        lines = _lines(apac.post("query", body, delta_sharing_capabilities="asyncquery=true"))
        return lines[0]["queryStatus"]["queryId"] if "queryStatus" in lines[0] else None

    query = eventually(pending, "the view is stale, so that a query waits for a refresh", pause=0.5)
    assert emea.post(f"queries/{query}").status == 404


def test_rows_that_are_added_are_appended_and_rows_that_are_deleted_take_a_new_directory(
    made, shares, lake, reader
):
    emea = shares["emea-shop"]
    before = emea.credentials()[0]
    more: list[dict[str, Any]] = [
        {"id": 1000 + number, "region": "emea", "note": HIDDEN} for number in range(5)
    ]
    lake.table.append(more)
    lake.upload()
    _refresh_until(emea, 25)
    appended = emea.credentials()[0]
    assert appended == before
    lake.table.delete(pl.col("id") < 30)
    lake.upload()
    _refresh_until(emea, 15)
    assert emea.credentials()[0] != before
    left = [row for row in [*ROWS, *more] if row["id"] >= 30]
    assert reader.call("rows", "polars", emea.address, mode="dir")["rows"] == _expected("emea", left)
    # Who was given the directory before may still read there, what was shown there before.
    assert lake.keys(_path(before))


def _refresh_until(share: Share, rows: int) -> None:
    """Wait for refreshes, of which the first may have begun before the source was changed."""
    # The first query of a view that is stale by then enqueues a refresh.
    eventually(lambda: _records(share.wait_for_refresh()) == rows, seconds=WAIT_SECONDS, pause=0.5)


def _records(lines: list[dict[str, Any]]) -> int:
    return sum(json.loads(line["file"]["stats"])["numRecords"] for line in lines if "file" in line)


def _settings(lake: Lake, directory: Path, tokens: Mapping[str, str]) -> dict[str, Any]:
    view = {
        "name": "mine",
        "from": "internal.raw.orders",
        "columns": ["id", "region"],
        "filter": "region = current_recipient('region')",
        "location": f"s3://{lake.views}/mine",
        "accessModes": ["url", "dir"],
        # Short enough to wait for, and long enough that most queries need no refresh.
        "maxStaleness": "8s",
    }
    source = {"name": "orders", "location": f"s3://{lake.source}/orders"}
    return {
        "version": 1,
        "stateDir": str(directory / "own"),
        "state": {"location": str(directory / "shared")},
        # Recipients are granted the view's share and not the one of its source.
        "shares": [
            {"name": "sales", "schemas": [{"name": "shop", "views": [view]}]},
            {"name": "internal", "schemas": [{"name": "raw", "tables": [source]}]},
        ],
        "recipients": [
            {
                "name": name,
                "tokens": [{"hash": hash_of(tokens[name])}],
                "shares": ["sales"],
                "properties": {"region": region},
            }
            for name, region in REGIONS.items()
        ],
        "storages": [_storage(lake, "source", lake.source), _storage(lake, "views", lake.views)],
        "pipeline": {"spark": {"master": "local[2]", "conf": FOR_SPEED}},
    }


def _storage(lake: Lake, name: str, bucket: str) -> dict[str, Any]:
    keys = lake.store.admin
    return {
        "name": name,
        "prefix": f"s3://{bucket}",
        "vendor": "s3",
        "options": {
            "profile": "seaweedfs",
            "endpoint": lake.store.endpoint,
            "acceptCaseVariants": True,
            "role": {"arn": ROLE_ARN},
            "identity": {
                "kind": "keys",
                "accessKeyId": keys.access_key_id,
                "secretAccessKey": {"value": keys.secret_access_key},
            },
        },
    }


@contextmanager
def _running_worker(config: Path, log: Path) -> Iterator[None]:
    env = {**os.environ, "SLUICE_METRICS_LISTEN": "127.0.0.1:0", "SPARK_LOCAL_IP": "127.0.0.1"}
    command: list[str | Path] = [SLUICE, "pipeline", "worker", "--config", config]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, env=env) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(WAIT_SECONDS)


def _expected(region: str, rows: list[dict[str, Any]]) -> list[str]:
    shown = [{"id": row["id"], "region": row["region"]} for row in rows if row["region"] == region]
    return sorted(json.dumps(row, sort_keys=True) for row in shown)


def _lines(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def _path(location: str) -> str:
    return f"{location.removeprefix('s3://').partition('/')[2]}/"
