"""A lake for benchmarks: a log on an S3 store of this machine, a Redis, and gateways that share its table."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.logs import BenchLog
from bench.peers import PREFIX
from bench.timed_query import Question
from gateway.commands.bearer import hash_of
from gateway.domain.log import DIRECTORY
from tests.deployments import Deployment, all_in_one, split
from tests.stores.redis import Server, running_server, valkey_program
from tests.stores.seaweedfs import SeaweedFS, running_seaweedfs

MODES: Mapping[str, Callable[[Path, dict[str, Any]], AbstractContextManager[Deployment]]] = {
    "all in one": all_in_one,
    "split": split,
}
# Room for the largest table, so that what is measured is not what is thrown away.
SNAPSHOTS = {"memory": 4 * 1024**3, "lines": 3 * 1024**3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A store and a Redis, and the token that opens what gateways share of it."""

    store: SeaweedFS
    redis: Server
    token: str

    def put(self, log: BenchLog, name: str) -> None:
        """Put a table's log where its gateways read it."""
        for file in sorted((log.directory / DIRECTORY).iterdir()):
            with file.open("rb") as content:
                self.store.s3.upload_fileobj(content, self.store.bucket, f"{name}/{DIRECTORY}/{file.name}")

    def question(self, name: str, response_format: str, encoding: str = "identity") -> Question:
        return Question(
            path=f"{PREFIX}/shares/share/schemas/default/tables/{name}/query",
            token=self.token,
            response_format=response_format,
            encoding=encoding,
        )

    @contextmanager
    def gateway(
        self, mode: str, folder: Path, names: list[str], urls: Mapping[str, Any]
    ) -> Iterator[Deployment]:
        """Run a gateway that remembers signatures as ``urls`` says."""
        store, keys = self.store, self.store.admin
        tables = [{"name": name, "location": f"s3://{store.bucket}/{name}"} for name in names]
        identity = {
            "kind": "keys",
            "accessKeyId": keys.access_key_id,
            "secretAccessKey": {"value": keys.secret_access_key},
        }
        options = {"profile": "seaweedfs", "endpoint": store.endpoint, "identity": identity}
        settings = {
            "version": 1,
            "shares": [{"name": "share", "schemas": [{"name": "default", "tables": tables}]}],
            "recipients": [{"name": "bench", "tokens": [{"hash": hash_of(self.token)}], "shares": "*"}],
            "storages": [
                {"name": "lake", "prefix": f"s3://{store.bucket}", "vendor": "s3", "options": options}
            ],
            "limits": {"rate": {"requestsPerSecond": 1_000_000, "burst": 1_000_000}},
            "snapshots": SNAPSHOTS,
            "cache": {"urls": dict(urls), "redis": {"url": self.redis.url, "timeout": "2s"}},
        }
        with MODES[mode](folder, settings) as deployment:
            yield deployment


@contextmanager
def running_lake(folder: Path) -> Iterator[Lake]:
    with (
        running_seaweedfs(folder / "store") as store,
        running_server(valkey_program(), folder / "redis") as redis,
    ):
        yield Lake(store=store, redis=redis, token=secrets.token_urlsafe(32))
