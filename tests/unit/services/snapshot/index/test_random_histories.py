from __future__ import annotations

import pytest

from gateway.errors import GatewayError
from tests.cases import each_case
from tests.fakes.state_store import FakeStateStore
from tests.hypothesis_profiles import seeds
from tests.unit.services.snapshot.index.histories import COLUMNS, History
from tests.unit.services.snapshot.index.served import Served, bytes_of, lines_of
from tests.unit.services.snapshot.index.written import write_index

_SEEDS = 24
_TYPED = [name for name in COLUMNS if name != "at"]


@each_case("seed", seeds(_SEEDS))
async def test_an_index_with_newer_commits_on_top_answers_as_the_log_does(seed):
    await check(seed)


@pytest.mark.deep
@pytest.mark.parametrize("batch", range(40))
async def test_yet_another_index_answers_as_the_log_does(batch):
    for seed in range(_SEEDS + batch * 50, _SEEDS + (batch + 1) * 50):
        await check(seed)


async def check(seed: int) -> None:
    history = History(seed)
    chance = history.random
    for _ in range(chance.randrange(1, 6)):
        history.commit(chance.randrange(25))
    state = FakeStateStore()
    log = history.reader.log
    made_of = await Served(log, None).store.latest(log)
    columns = chance.sample(_TYPED, chance.randrange(len(_TYPED)))
    write_index(state, log.location, made_of, block_rows=chance.choice([1, 3, 8, 50]), columns=columns)
    for _ in range(chance.randrange(4)):
        history.commit(chance.randrange(10))
    indexed, direct = Served(log, state), Served(log, None)
    if chance.random() < 0.5:
        # Read before the last commit, which is then a refresh.
        await indexed.query()
        history.commit(chance.randrange(10))
    for _ in range(2):
        hints = [history.predicate() for _ in range(chance.randrange(3))]
        await compare(indexed, direct, hints, chance.choice([5, 9, 100]))
    assert "used" in indexed.metrics.indexes or not made_of.files.num_files


async def compare(indexed: Served, direct: Served, hints: list[str], max_files: int) -> None:
    said = await outcome(direct, predicate_hints=hints)
    assert await outcome(indexed, predicate_hints=hints) == said, hints
    if isinstance(said, str):
        return
    asked = {"predicate_hints": hints, "max_files": max_files}
    assert bytes_of(await indexed.pages(**asked)) == bytes_of(await direct.pages(**asked)), asked


async def outcome(served: Served, **fields: object) -> object:
    try:
        answer = await served.query(**fields)
    except GatewayError as exc:
        return str(exc)
    return answer.head.lines, lines_of(answer)
