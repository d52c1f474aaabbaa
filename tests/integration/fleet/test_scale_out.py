"""Presign goes from one replica to three under load, before a signer that waits; a name leads to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.components import FAKE_GCS_SERVER, GCP_DOUBLE, SPLIT
from tests.e2e.url_stores import gcs_keyless_store
from tests.integration.fleet.lake import UploadedLake, uploaded_lake
from tests.integration.fleet.load import under_load
from tests.integration.fleet.metrics import total
from tests.integration.fleet.replicas import (
    ALL,
    Replica,
    Replicas,
    behind_a_name,
    plan_replicas,
    side_by_side,
    until,
)
from tests.name_server import NameServer, running_names

pytestmark = [pytest.mark.component(SPLIT, GCP_DOUBLE, FAKE_GCS_SERVER), pytest.mark.system]

FILES = 50
WAIT = timedelta(milliseconds=50)


@dataclass
class Signing:
    """An edge and what it needs for URLs, with places for three to sign them."""

    base_url: str
    lake: UploadedLake
    names: NameServer
    replicas: Replicas

    @property
    def signers(self) -> list[Replica]:
        return list(self.replicas.of["presign"])


@pytest.fixture
def signing(request, tmp_path) -> Iterator[Signing]:
    with ExitStack() as stack:
        store = stack.enter_context(gcs_keyless_store(request, tmp_path))
        assert store.blobs is not None
        store.blobs.delay = WAIT
        lake = uploaded_lake(tmp_path / "lake", store, FILES)
        names = stack.enter_context(running_names(["127.0.0.1"]))
        places = {service: side_by_side(1) for service in ALL} | {
            "presign": behind_a_name(3, "presign.fleet.test", names.port)
        }
        # Whatever is signed is signed anew, so that all of them have work.
        settings = lake.settings() | {"cache": {"urls": {"memory": 0, "redis": "never"}}}
        replicas = plan_replicas(tmp_path, settings, places)
        stack.callback(replicas.kill)
        base_url = f"http://{replicas.of['edge'][0].address}/delta-sharing"
        yield Signing(base_url, lake, names, replicas)


async def test_new_replicas_of_presign_get_their_share_within_seconds(signing, tell):
    first, *others = signing.signers
    await signing.replicas.start([first, *signing.replicas.every(("catalog", "snapshot", "edge"))])
    async with under_load(signing.base_url, signing.lake, rate=15, mix=("query",)) as load:
        await load.answered(45)
        before = calls(signing)
        await signing.replicas.start(others)
        signing.names.addresses = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
        known_at = time.monotonic()
        await until(lambda: min(calls(signing).values()) > 0, "the new replicas get nothing to do")
        found_after = time.monotonic() - known_at
        middle = calls(signing)
        await load.answered(90)
        after = calls(signing)
    shares = {name: after[name] - middle[name] for name in after}
    tell(
        "presign from 1 to 3",
        load.tally,
        f"pages signed by each before: {before}",
        f"in use {found_after:.1f} s after their addresses were known; maxConnectionAge is 15s",
        f"pages signed by each after: {shares}",
    )
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
    assert load.tally.reasons() == {}
    # Taking turns: each has a third, give or take what was under way at both ends.
    assert min(shares.values()) > sum(shares.values()) / 6


def calls(signing: Signing) -> Mapping[str, int]:
    return {
        replica.name: int(total([replica], "sluice_rpc_requests_total")) if replica.runs else 0
        for replica in signing.signers
    }
