"""Views in the catalog's answers."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.adapters.catalog_yaml import YamlCatalog, build_index
from gateway.adapters.view_index import CatalogShowings
from gateway.config.schema import Config
from gateway.domain.grant import Audience
from gateway.domain.job import JobState
from gateway.domain.manifest import Manifest, manifest_key
from gateway.domain.name import TableName
from gateway.errors import NotFound, Unavailable, Unsupported
from gateway.rpc.grant import GrantVerifier
from gateway.services.catalog.grant_signer import GrantSigner
from gateway.services.catalog.servicer import CatalogServicer
from gateway.services.catalog.showings import REMEMBERED, VIEW_FAILED
from gateway.v1 import catalog_pb2 as pb
from tests.fakes.audit import FakeAuditLog
from tests.fakes.jobs import FakeJobs
from tests.fakes.state_store import FakeStateStore
from tests.fakes.views import KEYS, fake_views
from tests.showings import keep, make_showing, make_table, make_view, manifest_of, recipient, renamed
from tests.unit.services.catalog.calls import NOON, FakeClock, FakeContext

KEY = Ed25519PrivateKey.generate()
SERVICE = FakeContext("ipv4:10.0.0.2:4000", ["spiffe://lineage"])


def sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def content(**ann: Any) -> dict[str, Any]:
    def recipient(name: str, **others: Any) -> dict[str, Any]:
        tokens = [{"hash": f"sha256:{sha256(name).hex()}"}]
        return {"name": name, "tokens": tokens, "shares": ["s"], **others}

    views = [
        {"name": "mine", "sql": "select * from s.d.t where r = current_recipient('region')"},
        {"name": "all", "from": "s.d.t"},
    ]
    placed = [
        {**view, "location": f"s3://lake/{view['name']}", "accessModes": ["url", "dir"]} for view in views
    ]
    table = {"name": "t", "location": "s3://lake/t"}
    return {
        "shares": [{"name": "s", "schemas": [{"name": "d", "tables": [table], "views": placed}]}],
        "storages": [{"name": "lake", "prefix": "s3://lake", "vendor": "aws"}],
        "recipients": [
            recipient("ann", **{"properties": {"region": "emea"}, **ann}),
            recipient("cleo", properties={"region": "apac"}),
        ],
        "principals": [
            {
                "name": "lineage",
                "certificate": "spiffe://lineage",
                "shares": ["s"],
                "permissions": ["actForRecipients"],
            }
        ],
    }


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.state, self.jobs = FakeStateStore(clock=self.clock), FakeJobs(self.clock)
        self.load()
        self.servicer: Any = CatalogServicer(
            store=self.catalog,
            signer=GrantSigner("k1", KEY, self.clock),
            page_keys=KEYS,
            views=fake_views(self.clock, self.state, self.jobs),
            audit=FakeAuditLog(),
            clock=self.clock,
        )

    def load(self, **ann: Any) -> None:
        self.index = build_index(Config.model_validate(content(**ann)))
        self.catalog = YamlCatalog(self.index)

    def make(self, view: str, recipient: str = "", name: str = "first") -> str:
        """Put a showing in place, and return where."""
        showing = CatalogShowings(lambda: self.index).find(TableName("s", "d", view), recipient)
        assert showing is not None
        manifest = Manifest(
            fingerprint=showing.fingerprint, view=view, name=name, version=0, refreshed_at=self.clock()
        )
        self.state.entries[manifest_key(showing.fingerprint)] = manifest.encode(), NOON
        return manifest.materialisation(showing.view.root).location.text

    async def resolve(
        self, view: str, who: str | pb.Caller = "ann", context: Any = None
    ) -> pb.ResolveResponse:
        caller = pb.Caller(token_sha256=sha256(who)) if isinstance(who, str) else who
        request = pb.ResolveRequest(
            caller=caller, share="s", schema="d", table=view, audiences=[pb.AUDIENCE_VENDING]
        )
        answer: pb.ResolveResponse = await self.servicer.Resolve(request, context or FakeContext())
        return answer

    async def ask(self, who: str, query: pb.AsyncQuery) -> pb.ResolveResponse:
        request = pb.ResolveRequest(
            caller=pb.Caller(token_sha256=sha256(who)),
            share="s",
            schema="d",
            table="mine",
            audiences=[pb.AUDIENCE_SNAPSHOT],
            query=query,
        )
        answer: pb.ResolveResponse = await self.servicer.Resolve(request, FakeContext())
        return answer

    async def listed(self, view: str, who: str = "ann") -> pb.Table:
        request = pb.ListTablesRequest(caller=pb.Caller(token_sha256=sha256(who)), share="s", schema="d")
        answer: pb.ListTablesResponse = await self.servicer.ListTables(request, FakeContext())
        return next(table for table in answer.items if table.name == view)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_view_is_granted_where_it_was_made_with_dir_and_without_history(bench):
    place = bench.make("all")

    answer = await bench.resolve("all")
    grant = GrantVerifier({"k1": KEY.public_key()}, Audience.VENDING, bench.clock).verify(answer.grants[0])

    assert answer.table.location == grant.location.text == place
    assert not grant.history_shared
    assert grant.opens_directory


async def test_each_recipient_is_granted_and_listed_its_own_place_and_none_another(bench):
    places = {who: bench.make("mine", who) for who in ("ann", "cleo")}

    assert places["ann"] != places["cleo"]
    for who, place in places.items():
        assert (await bench.resolve("mine", who)).table.location == place
        assert (await bench.listed("mine", who)).location == place


async def test_one_recipients_state_is_nothing_to_another(bench):
    bench.make("mine", "ann")

    with pytest.raises(Unavailable):
        await bench.resolve("mine", "cleo")
    listed = await bench.listed("mine", "cleo")
    assert (listed.location, list(listed.access_modes)) == ("", [pb.ACCESS_MODE_URL])


async def test_lists_and_grants_follow_a_refresh(bench):
    bench.make("all")
    before = (await bench.listed("all")).location, (await bench.resolve("all")).grants[0]

    place = bench.make("all", name="second")
    bench.clock.now += REMEMBERED

    assert (await bench.listed("all")).location == (await bench.resolve("all")).table.location == place
    assert before[0] != place
    assert (await bench.resolve("all")).grants[0] != before[1]


async def test_a_service_that_asks_for_itself_has_no_rows_of_its_own_and_one_that_acts_has_the_recipients(
    bench,
):
    place = bench.make("mine", "ann")

    with pytest.raises(Unsupported, match="ask for a recipient"):
        await bench.resolve("mine", pb.Caller(), SERVICE)
    assert (await bench.resolve("mine", pb.Caller(recipient="ann"), SERVICE)).table.location == place


async def test_the_generation_changes_with_a_property_and_tells_nothing_of_it(bench):
    before = bench.index.generation
    bench.load(properties={"region": "apac"})

    assert bench.index.generation != before
    assert "emea" not in repr(bench.index.principals)


async def test_a_query_is_of_who_began_it(bench):
    begun = await bench.ask("ann", pb.AsyncQuery(parameters=b"{}"))
    assert begun.query.state == pb.QUERY_STATE_PENDING
    assert not begun.grants
    assert not begun.table.location
    follow = pb.AsyncQuery(query_id=begun.query.query_id)
    with pytest.raises(NotFound):
        await bench.ask("cleo", follow)
    bench.make("mine", "ann")
    bench.clock.now += REMEMBERED

    done = await bench.ask("ann", follow)

    assert done.query.state == pb.QUERY_STATE_READY
    assert done.query.parameters == b"{}"
    assert len(done.grants) == 1


async def test_no_query_is_kept_for_what_has_just_failed_to_be_made(bench):
    await bench.ask("ann", pb.AsyncQuery(parameters=b"{}"))
    (key,) = bench.jobs.jobs
    bench.jobs.end(key, JobState.FAILED, "no such column: secret")
    before = dict(bench.state.entries)

    with pytest.raises(Unavailable) as raised:
        await bench.ask("ann", pb.AsyncQuery(parameters=b"other"))

    assert raised.value.error_code == VIEW_FAILED
    assert bench.state.entries == before


async def test_a_query_is_not_answered_by_what_is_of_the_future(bench):
    begun = await bench.ask("ann", pb.AsyncQuery(parameters=b"{}"))
    now = bench.clock.now
    bench.clock.now += timedelta(days=1)
    bench.make("mine", "ann")
    bench.clock.now = now + REMEMBERED

    followed = await bench.ask("ann", pb.AsyncQuery(query_id=begun.query.query_id))

    assert followed.query.state == pb.QUERY_STATE_PENDING


async def test_a_list_of_many_views_looks_for_some_at_a_time_and_leaves_out_what_takes_too_long(monkeypatch):
    # The loop's clock stands still, so that no time is over on a slow machine.
    now = asyncio.get_running_loop().time()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    state, view = FakeStateStore(), make_view()
    names = [TableName("s", "d", f"view{number:03}") for number in range(200)]
    for name in names:
        keep(state, manifest_of(renamed(make_showing(view), name)))
    looking, most, seen = 0, 0, 0

    async def look(method: str, key: str) -> None:
        nonlocal looking, most, now, seen
        looking, seen = looking + 1, seen + 1
        most = max(most, looking)
        # The first are answered, the others never. Once as many of these wait as may, the time is over.
        if seen == 116:
            now += 3600
        if seen > 100:
            await asyncio.Event().wait()
        looking -= 1

    state.before = look
    tables = [replace(make_table(view), name=name) for name in names]

    placed = await fake_views(state=state).place(recipient("ann"), tables)

    assert [table.name for table in placed] == names
    assert sum(table.location != view.root for table in placed) == 100
    assert most == 16


async def test_a_list_does_without_the_place_of_what_cannot_be_looked_for():
    state, view = FakeStateStore(), make_view()
    keep(state, manifest_of(make_showing(view)))
    state.fail_next("get")

    (placed,) = await fake_views(state=state).place(recipient("ann"), [make_table(view)])

    assert placed.location == view.root
