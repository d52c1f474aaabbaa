"""A gateway that shares tables on object stores by URLs, and whoever asks it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.commands.bearer import hash_of
from gateway.demo.table_builder import TableBuilder
from tests.contract.http.client import Answer, fetch
from tests.deployments import Deployment, all_in_one
from tests.e2e.url_stores import UrlStore
from tests.e2e.url_tables import Written

SCHEMA = "tables"
DELTA = "responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz"

Entry = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class UrlGateway:
    """A deployment with a share for each store, one recipient of them all, and one of none."""

    deployment: Deployment
    profile: Path
    token: str
    stranger: str
    shares: Sequence[str]

    def address(self, store: str, table: str) -> str:
        return f"{self.profile}#{store}.{SCHEMA}.{table}"

    def query(
        self,
        store: str,
        table: str,
        body: Mapping[str, Any] | None = None,
        capabilities: str = "responseformat=parquet",
        token: str | None = None,
    ) -> Answer:
        headers = {
            "Authorization": f"Bearer {self.token if token is None else token}",
            "Content-Type": "application/json",
            "delta-sharing-capabilities": capabilities,
        }
        path = f"/shares/{store}/schemas/{SCHEMA}/tables/{table}/query"
        return fetch("POST", self.deployment.base_url + path, headers, json.dumps(dict(body or {})).encode())


@dataclass(frozen=True, kw_only=True)
class UrlShare:
    """A store with tables on it, and a gateway that shares them by URLs."""

    store: UrlStore
    gateway: UrlGateway

    def address(self, table: str) -> str:
        return self.gateway.address(self.store.name, table)

    def query(self, table: str, **options: Any) -> Answer:
        return self.gateway.query(self.store.name, table, **options)


class LiveTable:
    """A table that goes on being written to, on a store."""

    def __init__(self, name: str, builder: TableBuilder, store: UrlStore) -> None:
        self.name = name
        self.builder = builder
        self._store = store
        self._uploaded: set[Path] = set()
        self.upload()

    def upload(self) -> None:
        """Copy what has been written since the last time, the log last."""
        root = self.builder.directory
        files = {file for file in root.rglob("*") if file.is_file()} - self._uploaded
        for file in sorted(files, key=lambda file: ("_delta_log" in file.parts, file)):
            self._store.put(f"{self.name}/{file.relative_to(root).as_posix()}", file.read_bytes())
        self._uploaded |= files


@contextmanager
def url_gateway(
    directory: Path,
    stores: Sequence[UrlStore],
    tables: Sequence[Entry | str],
    *,
    entries_of: Callable[[UrlStore], Sequence[Entry]] = lambda _: (),
    kind: Any = all_in_one,
    **settings: Any,
) -> Iterator[UrlGateway]:
    """Run a gateway with the tables on each store, named, or as entries with a location below the store.

    ``entries_of`` returns more entries for one store; they replace others of their names.
    """
    names = [store.name for store in stores]
    token, stranger = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    configuration = {
        "version": 1,
        "shares": [_share(store, [*tables, *entries_of(store)]) for store in stores],
        "storages": [store.storage for store in stores],
        "recipients": recipients(token, stranger, names),
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
        **settings,
    }
    with kind(directory, configuration) as deployment:
        profile = directory / "reader.share"
        content = {"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token}
        profile.write_text(json.dumps(content))
        yield UrlGateway(deployment=deployment, profile=profile, token=token, stranger=stranger, shares=names)


def recipients(token: str, stranger: str, shares: Sequence[str]) -> list[Entry]:
    return [
        {"name": "reader", "tokens": [{"hash": hash_of(token)}], "shares": list(shares)},
        {"name": "stranger", "tokens": [{"hash": hash_of(stranger)}], "shares": []},
    ]


def upload(written: Written, store: UrlStore, names: Sequence[str]) -> None:
    """Copy tables to a store."""
    for name in names:
        for path, content in written.files(name):
            store.put(f"{name}/{path}", content)


def read_url(url: str) -> Answer:
    """Fetch a URL as it is."""
    return fetch("GET", url, {})


def urls_of(answer: Answer) -> list[str]:
    """Return all URLs of an answer in the parquet format; there is one at least."""
    urls = [line["file"]["url"] for line in answer.streamed() if "file" in line]
    assert urls
    return urls


def _share(store: UrlStore, tables: Sequence[Entry | str]) -> Entry:
    entries = [_entry(store, {"name": each} if isinstance(each, str) else each) for each in tables]
    by_name = {entry["name"]: entry for entry in entries}
    return {"name": store.name, "schemas": [{"name": SCHEMA, "tables": [*by_name.values()]}]}


def _entry(store: UrlStore, entry: Entry) -> Entry:
    place = {"location": f"{store.prefix}/{entry['name']}", "historyShared": True, "accessModes": ["url"]}
    return {**place, **entry}
