"""The sample tables, served in one process and in five, and the official client before them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from gateway.demo.sample import SHARE, SampleCatalog, ensure_sample
from gateway.demo.sample_tables import SampleTable
from tests.components import ALL_IN_ONE, SPLIT
from tests.deployments import all_in_one, split
from tests.e2e.official_client import OfficialClient
from tests.e2e.url_tables import Written, write


class Sample:
    """The sample tables on disk, read there by deltalake, each once."""

    def __init__(self, catalog: SampleCatalog, client: OfficialClient) -> None:
        self.catalog = catalog
        self._client = client
        self._read: dict[tuple[SampleTable, int | None], Any] = {}

    def read(self, table: SampleTable, version: int | None = None) -> Any:
        key = (table, version)
        if key not in self._read:
            directory = self.catalog.location_of(table)
            self._read[key] = self._client.call("read_directory", directory, version=version)
        return self._read[key]


@dataclass(frozen=True, slots=True)
class Served:
    """A deployment that serves the sample, and the official client with a profile of it."""

    profile: Path
    client: OfficialClient

    def ask(self, call: str, *arguments: object, **options: object) -> Any:
        return self.client.call(call, self.profile, *arguments, **options)


@pytest.fixture(scope="session")
def sample(tmp_path_factory, official_client) -> Sample:
    directory = tmp_path_factory.mktemp("sample") / "tables"
    return Sample(ensure_sample(directory, lambda _: None), official_client)


@pytest.fixture(scope="session")
def official_client() -> Iterator[OfficialClient]:
    client = OfficialClient()
    yield client
    client.close()


@pytest.fixture(scope="session")
def url_tables(tmp_path_factory) -> Written:
    """Tables on disk, to be copied to object stores."""
    return write(tmp_path_factory.mktemp("url-tables"))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(all_in_one, id="all-in-one", marks=pytest.mark.component(ALL_IN_ONE)),
        pytest.param(split, id="split", marks=pytest.mark.component(SPLIT)),
    ],
)
def served(request, tmp_path_factory, sample, official_client) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("deployment")
    token = secrets.token_urlsafe(32)
    settings = {
        "version": 1,
        "shares": sample.catalog.to_shares(),
        "storages": [{"name": "sample", "prefix": str(sample.catalog.directory), "vendor": "local"}],
        "recipients": [{"name": "reader", "tokens": [{"hash": hash_of(token)}], "shares": [SHARE]}],
        # The client reads files one after the other, as fast as it can.
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
    }
    with request.param(directory, settings) as deployment:
        profile = directory / "reader.share"
        profile.write_text(
            json.dumps({"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token})
        )
        yield Served(profile, official_client)
