"""Views that differ by recipient, on a store that denies: nobody reaches another's rows, by url or by dir."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from gateway.commands.bearer import hash_of
from tests.builders import TableBuilder
from tests.components import SEAWEEDFS
from tests.contract.http.client import Answer, fetch
from tests.contract.http.test_credentials_on_a_store import client_of, is_denied, read_table
from tests.contract.http.test_views import rows_of
from tests.deployments import Deployment, Settings
from tests.view_worker import FIELDS, ViewWorker
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.stores.s3 import Keys
    from tests.stores.seaweedfs import SeaweedFS

pytestmark = [pytest.mark.slow, pytest.mark.component(SEAWEEDFS)]

REGIONS = {"ann": "emea", "cleo": "apac"}
# One for each way: the store's identity that may assume the role reads no data, so that it signs no URLs.
_URL, _DIR = "by-url", "by-dir"


@dataclass(frozen=True)
class World:
    deployment: Deployment
    settings: Settings
    store: SeaweedFS
    scratch: Path

    def ask(self, view: str, call: str, who: str, body: bytes = b"{}") -> Answer:
        headers = {"Authorization": f"Bearer token-of-{who}", "Content-Type": "application/json"}
        table = f"/shares/sales/schemas/eu/tables/{view}"
        return fetch("POST", f"{self.deployment.base_url}{table}/{call}", headers, body)

    def refresh(self, number: int = 0) -> int:
        def show(parameters: Mapping[str, str | None]) -> list[dict[str, Any]]:
            return [{"number": number + i, "region": parameters["property_0"]} for i in range(4)]

        return ViewWorker(self.settings, self.scratch, show, self._deliver).run()

    def shown(self, view: str, call: str, who: str) -> Answer:
        """Return the answer of a view, having had it made where it was not."""

        def show() -> Answer | None:
            answer = self.ask(view, call, who)
            if answer.status == 503:
                self.refresh()
                return None
            return answer

        answer = eventually(show, f"{view} is shown", pause=0.2)
        assert answer.status == 200, answer.body
        return answer

    def credentials(self, who: str) -> dict[str, Any]:
        answer = self.shown(_DIR, "temporary-table-credentials", who)
        found: dict[str, Any] = answer.json()["credentials"]
        return found

    def _deliver(self, directory: Path, url: str) -> None:
        bucket, _, key = url.removeprefix("s3a://").partition("/")
        for file in directory.rglob("*"):
            if file.is_file():
                self.store.put(bucket, f"{key}/{file.relative_to(directory)}", file.read_bytes())
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest, seaweedfs: SeaweedFS, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    kind: Callable[[Path, Settings], AbstractContextManager[Deployment]] = request.param
    directory = tmp_path_factory.mktemp("world")
    settings = _settings(seaweedfs, directory, f"s3://{seaweedfs.bucket}/views-{secrets.token_hex(4)}")
    TableBuilder(directory / "orders", FIELDS).append([{"number": 1, "region": "emea"}])
    with kind(directory / "run", settings) as deployment:
        yield World(deployment, settings, seaweedfs, directory / "scratch")


def _settings(store: SeaweedFS, directory: Path, prefix: str) -> Settings:
    views = [
        {
            "name": name,
            "sql": "select * from sales.eu.orders where region = current_recipient('region')",
            "location": f"{prefix}/{name}/view",
            "accessModes": [name.removeprefix("by-")],
        }
        for name in (_URL, _DIR)
    ]
    table = {"name": "orders", "location": str(directory / "orders")}
    storages = [
        {"name": name, "prefix": f"{prefix}/{name}", "vendor": "s3", "options": _options(store, keys)}
        for name, keys in ((_URL, store.admin), (_DIR, store.gateway))
    ]
    return {
        "version": 1,
        "shares": [{"name": "sales", "schemas": [{"name": "eu", "tables": [table], "views": views}]}],
        "storages": [*storages, {"name": "local", "prefix": str(directory), "vendor": "local"}],
        "recipients": [
            {
                "name": name,
                "tokens": [{"hash": hash_of(f"token-of-{name}")}],
                "shares": ["sales"],
                "properties": {"region": region},
            }
            for name, region in REGIONS.items()
        ],
        "state": {"location": str(directory / "state")},
    }


def _options(store: SeaweedFS, keys: Keys) -> dict[str, Any]:
    return {
        "profile": "seaweedfs",
        "endpoint": store.endpoint,
        "identity": {
            "kind": "keys",
            "accessKeyId": keys.access_key_id,
            "secretAccessKey": {"value": keys.secret_access_key},
        },
        "role": {"arn": store.role_arn},
        # Its policies fold case, and the directories of views differ by more.
        "acceptCaseVariants": True,
    }


def test_each_recipient_reads_its_own_rows_by_url(world: World) -> None:
    rows = {who: {row["region"] for row in rows_of(world.shown(_URL, "query", who))} for who in REGIONS}

    assert rows == {"ann": {"emea"}, "cleo": {"apac"}}


@pytest.mark.smoke
def test_a_url_that_is_moved_to_another_recipients_file_opens_nothing(world: World) -> None:
    own = next(line["file"]["url"] for line in world.shown(_URL, "query", "ann").streamed() if "file" in line)
    others = next(
        line["file"]["url"] for line in world.shown(_URL, "query", "cleo").streamed() if "file" in line
    )

    moved = urlunsplit(urlsplit(own)._replace(path=urlsplit(others).path))

    assert fetch("GET", own, {}).status == 200
    assert fetch("GET", moved, {}).status == 403


@pytest.mark.smoke
def test_a_credential_opens_its_recipients_directory_and_no_other(world: World) -> None:
    held = {who: world.credentials(who) for who in REGIONS}
    bucket, _, own = held["ann"]["location"].removeprefix("s3://").partition("/")
    other = held["cleo"]["location"].removeprefix(f"s3://{bucket}/")
    client = client_of(held["ann"])

    assert "_delta_log/00000000000000000000.json" in read_table(client, bucket, own)
    assert is_denied(client.list_objects_v2, Bucket=bucket, Prefix=f"{other}/")
    key = f"{other}/_delta_log/00000000000000000000.json"
    assert is_denied(client.get_object, Bucket=bucket, Key=key)
    # Neither what is above both, where their names could be listed, nor what is to come beside its own.
    for above in (own.rpartition("/")[0], own.rpartition("/")[0].rpartition("/")[0]):
        assert is_denied(client.list_objects_v2, Bucket=bucket, Prefix=f"{above}/")
    assert is_denied(client.put_object, Bucket=bucket, Key=f"{own}/new", Body=b"")


@pytest.mark.smoke
def test_asking_for_another_recipients_directory_is_refused_without_a_word_of_it(world: World) -> None:
    place = world.credentials("ann")["location"]

    world.credentials("cleo")

    answer = world.ask(_DIR, "temporary-table-credentials", "cleo", b'{"location":"%s"}' % place.encode())

    assert answer.status == 400
    assert place.encode() not in answer.body
