"""Presign goes from one replica to three under load, before a signer that waits; a name leads to them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta

import pytest

from tests.components import ENVOY, FAKE_GCS_SERVER, GCP_DOUBLE, REDIS, SPLIT
from tests.e2e.url_stores import gcs_keyless_store
from tests.integration.fleet.lake import uploaded_lake
from tests.integration.fleet.metrics import total, work_of
from tests.integration.fleet.replicas import behind_a_name, until
from tests.integration.fleet.running import Fleet, planned_fleet
from tests.name_server import NameServer, running_names
from tests.stores.redis import redis_program

pytestmark = [
    pytest.mark.component(SPLIT, ENVOY, REDIS, GCP_DOUBLE, FAKE_GCS_SERVER),
    pytest.mark.system,
]

FILES = 50
WAIT = timedelta(milliseconds=50)
MIX = ("query", "query", "credential", "query")
# services.maxConnectionAge is 15 s, a tenth more for some, and a name is looked up once in a second. The rest
# is for a busy machine.
SECONDS = 90


@pytest.fixture
def names() -> Iterator[NameServer]:
    with running_names(["127.0.0.1"]) as server:
        yield server


@pytest.fixture
def signing(request, tmp_path, names) -> Iterator[Fleet]:
    """A fleet before a store whose URLs a service signs, with places for three to ask it."""
    with ExitStack() as stack:
        store = stack.enter_context(gcs_keyless_store(request, tmp_path))
        assert store.blobs is not None
        store.blobs.delay = WAIT
        yield stack.enter_context(
            planned_fleet(
                tmp_path,
                uploaded_lake(tmp_path / "lake", store, FILES),
                redis_program=redis_program,
                places={"presign": behind_a_name(3, "presign.fleet.test", names.port)},
                # Whatever is signed is signed anew, so that all of them have work.
                cache={"urls": {"memory": 0, "redis": "never"}},
            )
        )


async def test_new_replicas_of_presign_get_their_share(signing, names, recorded):
    others = signing.of("presign")[1:]
    await signing.heal(without=others)
    async with recorded("presign from 1 to 3", signing.loaded(rate=20, mix=MIX)) as load:
        await load.answered(45, of=("query",))
        load.note(f"pages signed by each before: {pages(signing)}")
        await signing.replicas.start(others)
        names.addresses = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
        known_at = time.monotonic()
        await signing.found(others)
        await until(lambda: min(pages(signing).values()) > 0, "the new replicas sign pages")
        found_after = time.monotonic() - known_at
        load.note(f"in use by both edges {found_after:.1f} s after their addresses were known")
        before = Counter(pages(signing))
        await load.answered(90, of=("query",))
        shares = Counter(pages(signing)) - before
        load.note(f"pages signed by each after: {dict(shares)}")
        found = total(signing.of("vending"), "sluice_credential_requests_total", source="redis")
    assert load.tally.faults == []
    assert load.tally.count("answered") == load.tally.count("sent")
    assert load.tally.reasons() == {}
    assert found_after < SECONDS
    # Taking turns: each has a third, give or take what was under way at both ends.
    assert len(shares) == 3
    assert min(shares.values()) > sum(shares.values()) / 6
    assert max(shares.values()) < sum(shares.values()) / 2
    assert found > 0


def pages(signing: Fleet) -> Mapping[str, int]:
    return {replica.name: work_of(replica) if replica.runs else 0 for replica in signing.of("presign")}
