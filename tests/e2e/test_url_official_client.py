"""The official client reads tables on every kind of store by URLs, in both formats, and finds their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.components import ALL_IN_ONE, CLIENT, DELTALAKE, SPLIT
from tests.deployments import all_in_one, split
from tests.e2e.official_client import ClientError, OfficialClient
from tests.e2e.url_gateway import UrlGateway, upload, url_gateway
from tests.e2e.url_stores import GCS_COMPONENTS, SEAWEEDFS_STORE, STORES, UrlStore, gcs_rsa_store
from tests.e2e.url_tables import (
    AWKWARD_KEYS,
    FEED,
    FEED_PARTITIONED,
    NEED_DELTA,
    ODD,
    PLAIN,
    SPECIAL,
    TABLES,
    VECTORS,
    without_time,
)

pytestmark = [pytest.mark.component(CLIENT), pytest.mark.component(DELTALAKE)]

NOT_EXPRESSIBLE = "Unsupported Delta Table Properties"
# In the parquet format the client writes some characters of a URL's path as they are that were escaped there.
# To most stores that is the same path. Google takes it only as it was signed.
RESPELLED = frozenset({ODD, AWKWARD_KEYS})

both_formats = pytest.mark.parametrize("use_delta_format", [True, False], ids=["delta", "parquet"])


@dataclass(frozen=True, kw_only=True)
class Shared:
    store: UrlStore
    gateway: UrlGateway
    client: OfficialClient

    def ask(self, call: str, name: str, **options: object) -> object:
        return self.client.call(call, self.gateway.address(self.store.name, name), **options)

    def cannot_spell(self, name: str, *, use_delta_format: bool) -> bool:
        return self.store.vendor == "gcp" and name in RESPELLED and not use_delta_format


@pytest.fixture(scope="module")
def client() -> Iterator[OfficialClient]:
    client = OfficialClient("tests.e2e.read_urls_with_client")
    yield client
    client.close()


def _in(kind, mark, param):
    return pytest.param((kind, param.values[0]), id=f"{param.id}-{mark[0]}", marks=[*param.marks, mark[1]])


@pytest.fixture(
    scope="module",
    params=[
        *(_in(all_in_one, ("one", pytest.mark.component(ALL_IN_ONE)), store) for store in STORES),
        _in(split, ("five", pytest.mark.component(SPLIT)), SEAWEEDFS_STORE),
    ],
)
def shared(request, tmp_path_factory, url_tables, client) -> Iterator[Shared]:
    kind, run = request.param
    directory = tmp_path_factory.mktemp("url-gateway")
    with run(request, directory) as store:
        upload(url_tables, store, TABLES)
        with url_gateway(directory, [store], TABLES, kind=kind) as gateway:
            yield Shared(store=store, gateway=gateway, client=client)


@pytest.mark.parametrize("name", TABLES)
@both_formats
def test_a_table_has_the_rows_that_were_written(shared, url_tables, name, use_delta_format):
    if name in NEED_DELTA and not use_delta_format:
        with pytest.raises(ClientError, match=NOT_EXPRESSIBLE):
            shared.ask("load", name, use_delta_format=False)
    elif shared.cannot_spell(name, use_delta_format=use_delta_format):
        with pytest.raises(ClientError, match="FileNotFoundError"):
            shared.ask("load", name, use_delta_format=False)
    else:
        assert shared.ask("load", name, use_delta_format=use_delta_format) == url_tables.latest(name)


@pytest.mark.parametrize("name", [PLAIN, VECTORS, SPECIAL])
def test_the_client_finds_the_format_by_itself(shared, url_tables, name):
    assert shared.ask("load", name) == url_tables.latest(name)


@pytest.mark.parametrize("name", [VECTORS, FEED, SPECIAL])
def test_every_version_can_be_read(shared, url_tables, name):
    for version in range(url_tables.version(name) + 1):
        assert shared.ask("load", name, version=version) == url_tables.at(name, version)


@pytest.mark.parametrize("name", [FEED, FEED_PARTITIONED])
@both_formats
def test_all_changes_are_found(shared, url_tables, name, use_delta_format):
    found = shared.ask(
        "load_changes",
        name,
        starting_version=0,
        ending_version=url_tables.version(name),
        use_delta_format=use_delta_format,
    )

    assert without_time(found) == url_tables.changes(name)


@pytest.mark.component(*GCS_COMPONENTS)
@pytest.mark.system
def test_on_google_a_client_that_spells_paths_anew_is_refused_and_the_delta_format_helps(
    request, tmp_path, url_tables
):
    """The client as it is installed: a path with a partition in it has an equals sign."""
    client = OfficialClient("tests.oracles.client_frames")
    with gcs_rsa_store(request, tmp_path) as store:
        upload(url_tables, store, [FEED_PARTITIONED])
        with url_gateway(tmp_path, [store], [FEED_PARTITIONED]) as gateway:
            address = gateway.address(store.name, FEED_PARTITIONED)
            with pytest.raises(ClientError, match="FileNotFoundError"):
                client.call("load", address)

            assert client.call("load", address, use_delta_format=True) == url_tables.latest(FEED_PARTITIONED)
    client.close()
