"""Tables at random paths, each opened on SeaweedFS by a credential that must open nothing beside it."""

from __future__ import annotations

import random

import pytest
import pytest_asyncio

from gateway.domain.location import Location
from gateway.errors import InvalidArgument, Unsupported
from tests.components import BOTO3, SEAWEEDFS
from tests.contract.issuing import Denied, issue
from tests.contract.s3_recipient import S3Harness
from tests.contract.test_issuing import opened, seaweedfs_options

pytestmark = [pytest.mark.integration, pytest.mark.component(SEAWEEDFS, BOTO3)]

PATHS = 200
# Letters that a sibling could share, and signs that a policy, a URL or a text could stumble over.
ALPHABET = "abcxyz0189" * 3 + "*?${}'\"%+ =,:;&#@!~()[]-_.éß日😀"


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
    """Return keys that are not below the table, though they look much like it."""
    above, _, name = table.path.rpartition("/")
    changed = list(name)
    changed[chance.randrange(len(changed))] = "Q"
    near = [
        f"{table.path}2",
        f"{table.path}-old",
        f"{above}/{''.join(changed)}",
        f"{above}/{name[:-1]}Q",
        above,
    ]
    return [f"{directory}/part-0" for directory in near]


async def test_each_of_many_tables_is_opened_and_nothing_near_it(harness):
    chance = random.Random(4)
    opened_paths = refused = 0
    for number in range(PATHS):
        table = random_table(harness, number, chance)
        try:
            credential = await issue(harness, table)
        except Unsupported:
            refused += 1
            continue
        await harness.put(table, "part-0", b"rows")
        assert await harness.read(credential, table, "part-0") == b"rows", table.path
        assert await harness.listing(credential, table, f"{table.path}/") == [f"{table.path}/part-0"]
        root = harness.location("generated")
        for key in neighbours(table, chance):
            path = key.removeprefix(f"{root.path}/")
            await harness.put(root, path, b"secret")
            with pytest.raises(Denied):
                await harness.read(credential, root, path)
        opened_paths += 1
    # Refusing is safe, but refusing everything would prove nothing.
    assert opened_paths > PATHS / 4, f"{refused} of {PATHS} were refused"
