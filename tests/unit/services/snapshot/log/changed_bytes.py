"""Decodes parquet files in which some bytes are changed, in a process that has little memory to lose.

Prints the number of each before it is decoded, so that one that ends the process is known; then how many
there were of each outcome. Run as a module, with the first number and how many there are.
"""

from __future__ import annotations

import random
import resource
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl
from polars.exceptions import PanicException, PolarsError

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.bounds import Allowance, Budget
from gateway.services.snapshot.log.parquet import open_parquet, read_parquet
from gateway.services.snapshot.log.thrift import Malformed
from tests.unit.services.snapshot.log.parquet_files import (
    DIFFERENCES,
    GZIP,
    INT96,
    LENGTHS,
    LONG,
    PLAIN,
    SHARED,
    UNCOMPRESSED,
    Values,
    column_file,
    differences,
    parquet,
    plain,
    with_lengths,
    with_prefixes,
)

MEMORY = 4 * 1024**3
_COUNT = 150
_TEXTS = [f"part-{n % 7}-{n:03}".encode() for n in range(_COUNT)]
_ROWS = pl.DataFrame(
    {"add": [None, {"path": "a", "size": 1, "tags": [{"key": "k", "value": None}], "b": True, "f": 0.5}] * 3}
)


def main(first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcomes: Counter[str] = Counter()
    for number in range(first, first + count):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        outcomes[_outcome(changed(number))] += 1
    sys.stdout.write(f"{dict(outcomes)}\n")


def changed(number: int) -> bytes:
    """Return a file with some bytes changed: of its values before they are packed, or of the whole."""
    chance = random.Random(number)
    seed = chance.choice(_SEEDS)
    if isinstance(seed, bytes):
        return _change(chance, seed)
    if chance.random() < 1 / 2:
        return column_file(["add", "x"], replace(seed, encoded=_change(chance, seed.encoded)))
    return _change(chance, column_file(["add", "x"], seed))


def _outcome(content: bytes) -> str:
    budget = Budget()
    try:
        read_parquet(content, open_parquet(content, budget), {"add": None}, Allowance(budget))
    except (Malformed, Beyond, PolarsError, PanicException) as exc:
        return type(exc).__name__
    return "read"


def _change(chance: random.Random, content: bytes) -> bytes:
    made = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        made[chance.randrange(len(made))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    # A number may go on for as long as the next byte says so.
    if chance.random() < 1 / 4:
        at = chance.randrange(len(made))
        made[at:at] = bytes([0xFF] * chance.randint(1, 8))
    return bytes(made)


def _seeds() -> Sequence[Values | bytes]:
    encodings: dict[int, Callable[[slice], bytes]] = {
        PLAIN: lambda some: plain(*_TEXTS[some]),
        DIFFERENCES: lambda some: differences(range(2**40, 2**40 + _COUNT * 7, 7)[some]),
        LENGTHS: lambda some: with_lengths(*_TEXTS[some]),
        SHARED: lambda some: with_prefixes(*_TEXTS[some]),
    }
    made = [
        Values(
            encoded=encode(slice(None, None, 2 if is_optional else 1)),
            count=_COUNT,
            kind=LONG if encoding == DIFFERENCES else Values.kind,
            encoding=encoding,
            codec=codec,
            is_v2=is_v2,
            is_optional=is_optional,
        )
        for encoding, encode in encodings.items()
        for codec in (UNCOMPRESSED, GZIP)
        for is_v2 in (False, True)
        for is_optional in (False, True)
    ]
    times = Values(encoded=b"\0" * 12 * _COUNT, count=_COUNT, kind=INT96)
    written = [parquet(_ROWS, compression=codec, row_group_size=3) for codec in ("uncompressed", "snappy")]
    return [*made, times, *written]


_SEEDS = _seeds()

if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
