"""Queries that wait for a view."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.key import Key, Keys
from gateway.domain.name import TableName
from gateway.errors import InvalidArgument, NotFound
from gateway.services.catalog.queries import JOINED, LIFE, MAX_PARAMETERS, SWEEP_SOON, Queries
from tests.background import finish_background
from tests.fakes.state_store import FakeStateStore
from tests.fakes.views import KEYS
from tests.showings import NAME, NOON
from tests.unit.services.catalog.calls import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
def state(clock) -> FakeStateStore:
    return FakeStateStore(clock=clock)


@pytest.fixture
def queries(state, clock) -> Queries:
    return Queries(state, KEYS, clock)


async def test_a_query_is_found_by_who_began_it_even_by_another_replica(queries, state, clock):
    begun = await queries.begin("ann", NAME, b"{}", "", NOON)

    assert await Queries(state, KEYS, clock).find("ann", TableName("S", "D", "View"), begun.id) == begun


async def test_no_two_queries_have_the_same_id_nor_one_that_others_could_know(queries, state, clock):
    other = Queries(state, Keys(current=Key(id="k", secret=b"o" * 32)), clock)
    ids = [
        (await by.begin(who, table, parameters, key, NOON)).id
        for by in (queries, other)
        for who in ("ann", "cleo")
        for table in (NAME, TableName("s", "d", "other"))
        for parameters, key in ((b"1", ""), (b"2", ""), (b"1", "1"), (b"1", "2"))
    ]

    assert len(set(ids)) == len(ids)
    assert {len(query_id) for query_id in ids} == {32}


async def test_who_asks_again_and_again_joins_its_own_query_for_a_while(queries, state, clock):
    first = await queries.begin("ann", NAME, b"{}", "", NOON)

    clock.now += JOINED - timedelta(seconds=1)
    assert await Queries(state, KEYS, clock).begin("ann", NAME, b"{}", "", clock()) == first
    clock.now += timedelta(seconds=1)
    assert (await queries.begin("ann", NAME, b"{}", "", clock())).id != first.id
    assert len(state.entries) == 2


@pytest.mark.parametrize(
    ("who", "table"), [("cleo", NAME), ("ann", TableName("s", "d", "other")), ("", NAME)]
)
async def test_a_query_of_another_or_of_another_table_is_as_none(queries, who, table):
    begun = await queries.begin("ann", NAME, b"{}", "k", NOON)

    with pytest.raises(NotFound) as other:
        await queries.find(who, table, begun.id)
    with pytest.raises(NotFound) as none:
        await queries.find("ann", NAME, "A" * 32)
    assert other.value.message == none.value.message


@pytest.mark.parametrize("query_id", ["", "x", "../jobs/x", "A" * 65, "ä" * 32, "a/b" * 12])
async def test_what_cannot_be_an_id_is_not_looked_for(queries, state, query_id):
    with pytest.raises(NotFound):
        await queries.find("ann", NAME, query_id)
    assert state.calls == []


async def test_a_query_expires_after_a_day(queries, clock):
    begun = await queries.begin("ann", NAME, b"{}", "k", NOON)

    clock.now += LIFE
    with pytest.raises(NotFound):
        await queries.find("ann", NAME, begun.id)
    anew = await queries.begin("ann", NAME, b'{"limitHint":1}', "k", NOON)
    assert (await queries.find("ann", NAME, anew.id)).parameters == b'{"limitHint":1}'


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"[" * 100_000,
        b'{"table": ["s", "d", "view"], "principal": "ann", "parameters": "", "needed": 1e999}',
        b'{"table": ["s", "d", "view"], "principal": "ann", "parameters": "",'
        b' "needed": "0001-01-01T00:00:00+23:59", "expiresAt": "0001-01-01T00:00:00+23:59"}',
    ],
)
async def test_a_query_that_cannot_be_read_is_as_none_and_its_key_can_be_used_again(queries, state, content):
    begun = await queries.begin("ann", NAME, b"{}", "k", NOON)
    state.entries[f"queries/{begun.id}.json"] = content, NOON

    with pytest.raises(NotFound):
        await queries.find("ann", NAME, begun.id)
    assert (await queries.begin("ann", NAME, b"2", "k", NOON)).parameters == b"2"


async def test_the_same_key_is_the_same_query_for_the_same_parameters_only(queries):
    first = await queries.begin("ann", NAME, b"1", "key", NOON)

    assert await queries.begin("ann", NAME, b"1", "key", NOON + timedelta(hours=1)) == first
    assert (await queries.begin("cleo", NAME, b"1", "key", NOON)).id != first.id
    with pytest.raises(InvalidArgument, match="other parameters"):
        await queries.begin("ann", NAME, b"2", "key", NOON)


async def test_of_two_that_take_over_a_key_at_once_one_is_kept_and_the_other_compared_with_it(
    queries, state, clock
):
    async def another(method: str, key: str) -> None:
        if method == "replace" and not taken:
            taken.append(key)
            await Queries(state, KEYS, clock).begin("ann", NAME, b"theirs", "key", NOON)

    await queries.begin("ann", NAME, b"old", "key", NOON)
    clock.now += LIFE
    taken: list[str] = []
    state.before = another

    with pytest.raises(InvalidArgument, match="other parameters"):
        await queries.begin("ann", NAME, b"ours", "key", NOON)
    assert len(taken) == 1


async def test_parameters_and_keys_are_bounded(queries, state):
    with pytest.raises(InvalidArgument):
        await queries.begin("ann", NAME, b"x" * (MAX_PARAMETERS + 1), "", NOON)
    with pytest.raises(InvalidArgument):
        await queries.begin("ann", NAME, b"x", "k" * 256, NOON)
    assert state.entries == {}


async def test_what_has_expired_is_deleted_in_passing(queries, state, clock):
    old = await queries.begin("ann", NAME, b"{}", "", NOON)
    await finish_background()

    clock.now += LIFE + timedelta(hours=2)
    new = await queries.begin("ann", NAME, b"{}", "", NOON)
    await finish_background()

    assert f"queries/{old.id}.json" not in state.entries
    assert f"queries/{new.id}.json" in state.entries


async def test_sweeps_go_on_where_the_last_one_ended_until_all_was_looked_at(queries, state, clock):
    # One sweep looks at 10,000.
    young = [f"queries/{number:032}.json" for number in range(25_000)]
    old = [f"queries/a{number:031}.json" for number in range(3)]
    state.entries |= dict.fromkeys(young, (b"", NOON))
    state.entries |= {key: (b"", NOON - LIFE - timedelta(hours=2)) for key in old}

    for _ in range(3):
        assert set(old) <= set(state.entries)
        await queries.begin("ann", NAME, b"{}", "k", NOON)
        await finish_background()
        clock.now += SWEEP_SOON

    assert not set(old) & set(state.entries)
    assert set(young) <= set(state.entries)
    state.calls.clear()
    await queries.begin("ann", NAME, b"{}", "k", NOON)
    assert "list" not in {method for method, _ in state.calls}


async def test_a_sweep_that_failed_goes_on_from_there(queries, state, clock):
    old = await queries.begin("ann", NAME, b"{}", "", NOON)
    await finish_background()
    clock.now += LIFE + timedelta(hours=2)
    state.fail_next("delete")
    for _ in range(2):
        await queries.begin("ann", NAME, b"{}", "k", NOON)
        await finish_background()
        clock.now += SWEEP_SOON

    assert f"queries/{old.id}.json" not in state.entries
