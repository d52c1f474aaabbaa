"""A log on an object store behind a bad network: a right answer or a clear one, never a wrong one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.builders import TableBuilder, numbers, rows
from tests.components import ALL_IN_ONE, SEAWEEDFS, TOXIPROXY
from tests.contract.http.client import Answer, fetch
from tests.deployments import Deployment, Settings, all_in_one
from tests.stores.seaweedfs import SeaweedFS
from tests.stores.toxiproxy import Toxiproxy, running_toxiproxy

pytestmark = [pytest.mark.system, pytest.mark.component(ALL_IN_ONE, SEAWEEDFS, TOXIPROXY)]

# One for all tests: a bucket of its own takes the store seven of the volumes that it has.
BUCKET = "lake"


@dataclass(frozen=True)
class World:
    """A gateway that reaches a store through a proxy, and a table there that goes on growing."""

    deployment: Deployment
    proxy: Toxiproxy
    store: SeaweedFS
    # Where the table lies in the bucket.
    prefix: str
    table: TableBuilder

    def ask(self, call: str) -> Answer:
        return fetch("GET", f"{self.deployment.base_url}/shares/s/schemas/s/tables/numbers/{call}", {})

    def grow(self) -> int:
        """Commit a file, and return the version that the table then has."""
        self.table.append(rows([1]))
        upload(self.store, self.prefix, self.table.directory)
        return self.table.version


def upload(store: SeaweedFS, prefix: str, directory: Path) -> None:
    known = set(store.keys(BUCKET, prefix))
    for file in sorted(directory.rglob("*")):
        key = f"{prefix}/{file.relative_to(directory)}"
        if file.is_file() and key not in known:
            store.put(BUCKET, key, file.read_bytes())


def settings(store: SeaweedFS, prefix: str, proxy: Toxiproxy, state: Path) -> Settings:
    options = {
        "profile": "seaweedfs",
        "endpoint": f"http://127.0.0.1:{proxy.port}",
        "identity": {
            "kind": "keys",
            "accessKeyId": store.gateway.access_key_id,
            "secretAccessKey": {"value": store.gateway.secret_access_key},
        },
        "role": {"arn": store.role_arn},
        "acceptCaseVariants": True,
    }
    table = {
        "name": "numbers",
        "location": f"s3://{BUCKET}/{prefix}",
        "historyShared": True,
        "accessModes": ["dir"],
    }
    return {
        "allowAnonymous": True,
        "stateDir": str(state),
        "shares": [{"name": "s", "schemas": [{"name": "s", "tables": [table]}]}],
        "storages": [{"name": "lake", "prefix": f"s3://{BUCKET}/faults", "vendor": "s3", "options": options}],
    }


@pytest.fixture
def world(seaweedfs, tmp_path) -> Iterator[World]:
    prefix = f"faults/{secrets.token_hex(4)}/numbers"
    table = numbers(tmp_path)
    for number in range(6):
        table.append(rows([number]))
    table.checkpoint()
    table.append(rows([7]))
    upload(seaweedfs, prefix, table.directory)
    port = urlsplit(seaweedfs.endpoint).port
    assert port is not None
    with (
        running_toxiproxy(tmp_path, port) as proxy,
        all_in_one(tmp_path, settings(seaweedfs, prefix, proxy, tmp_path / "state")) as deployment,
    ):
        yield World(deployment, proxy, seaweedfs, prefix, table)


def files_of(answer: Answer) -> int:
    assert answer.status == 200, answer.body
    return int(json.loads(answer.body.splitlines()[1])["metaData"]["numFiles"])


def is_clear(answer: Answer) -> bool:
    """Tell whether an answer says that the table cannot be read now, and nothing of the store."""
    text = answer.body.decode()
    return answer.status in {503, 504} and "errorCode" in text and "127.0.0.1" not in text


def test_a_slow_store_is_waited_for(world):
    world.proxy.add("latency", latency=700, jitter=300)

    assert files_of(world.ask("metadata")) == 7
    world.grow()
    assert files_of(world.ask("metadata")) == 8


@pytest.mark.parametrize(
    ("toxic", "attributes"),
    [
        pytest.param("reset_peer", {"timeout": 0}, id="connections are reset"),
        pytest.param("timeout", {"timeout": 0}, id="nothing is ever answered"),
        pytest.param("limit_data", {"bytes": 300}, id="answers end in their middle"),
    ],
)
def test_a_store_that_does_not_answer_is_a_clear_error_and_nothing_is_kept_of_it(world, toxic, attributes):
    world.proxy.add(toxic, **attributes)
    assert is_clear(world.ask("metadata"))
    assert is_clear(world.ask("version"))

    world.proxy.remove(toxic)
    version = world.grow()
    answer = world.ask("metadata")
    assert (files_of(answer), answer.headers["Delta-Table-Version"]) == (8, str(version))


def test_a_store_that_goes_away_between_two_requests_is_not_answered_for_from_memory(world):
    assert files_of(world.ask("metadata")) == 7
    world.proxy.set_enabled(enabled=False)
    world.grow()
    assert is_clear(world.ask("metadata"))

    world.proxy.set_enabled(enabled=True)
    assert files_of(world.ask("metadata")) == 8
