"""Tables at random paths, each opened on SeaweedFS by a credential that must open nothing beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import pytest_asyncio

from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.errors import InvalidArgument, Unsupported
from tests.components import BOTO3, SEAWEEDFS
from tests.contract.issuing import Denied, issue
from tests.contract.s3_recipient import S3Harness
from tests.contract.test_issuing import opened, seaweedfs_options

pytestmark = [pytest.mark.integration, pytest.mark.component(SEAWEEDFS, BOTO3)]

# Letters that a sibling could share, and signs that a policy, a URL or a text could stumble over.
LETTERS = "abcxyz0189"
SIGNS = "{}'\"%+ =,:;&#@!~()[]-_.éß日😀"
# A path with one of these is refused on this store: seldom enough that most paths are opened.
REFUSED = "*?$"
ALPHABET = LETTERS * 3 + SIGNS * 3 + REFUSED


@pytest_asyncio.fixture
async def harness(seaweedfs):
    async with opened("s3", f"s3://{seaweedfs.bucket}", seaweedfs_options(seaweedfs)) as storage:
        yield S3Harness(storage, seaweedfs)


def random_table(harness: S3Harness, number: int, chance: random.Random) -> Location:
    """Return the location of a table that could be configured, in a directory of its own."""
    while True:
        parts = [
            "".join(chance.choices(ALPHABET, k=chance.randint(1, 10))) for _ in range(chance.randint(1, 4))
        ]
        try:
            return harness.location(f"generated/{number}/{'/'.join(parts)}")
        except InvalidArgument:
            continue


def neighbours(table: Location, chance: random.Random) -> list[str]:
    """Return directories that are not below the table, though they look much like it."""
    above, _, name = table.path.rpartition("/")
    changed = list(name)
    changed[chance.randrange(len(changed))] = "Q"
    near = [f"{above}/{''.join(changed)}", f"{above}/{name[:-1]}Q", above]
    return [f"{table.path}2", f"{table.path}-old", *near]


async def check_neighbours(
    harness: S3Harness, credential: Credential, table: Location, directories: Sequence[str]
) -> None:
    root = harness.location("generated")
    for directory in directories:
        path = f"{directory.removeprefix(f'{root.path}/')}/part-0"
        await harness.put(root, path, b"secret")
        with pytest.raises(Denied):
            await harness.read(credential, root, path)
        with pytest.raises(Denied):
            await harness.listing(credential, root, f"{directory}/")
    # Without its slash a prefix is that of every sibling whose name begins so.
    with pytest.raises(Denied):
        await harness.listing(credential, root, table.path)


@pytest.mark.parametrize("paths", [100, pytest.param(1000, marks=pytest.mark.deep)])
async def test_each_of_many_tables_is_opened_and_nothing_near_it(harness, paths):
    chance = random.Random(4)
    opened_paths = 0
    # Beyond this, refusing would be the rule.
    most_drawn = 2 * paths
    for number in range(most_drawn):
        table = random_table(harness, number, chance)
        try:
            credential = await issue(harness, table)
        except Unsupported:
            assert set(REFUSED) & set(table.path), table.path
            continue
        await harness.put(table, "part-0", b"rows")
        assert await harness.read(credential, table, "part-0") == b"rows", table.path
        assert await harness.listing(credential, table, f"{table.path}/") == [f"{table.path}/part-0"]
        await check_neighbours(harness, credential, table, neighbours(table, chance))
        opened_paths += 1
        if opened_paths == paths:
            return
    pytest.fail(f"only {opened_paths} of {most_drawn} paths were opened")
