"""Random histories of a table whose columns predicates can be about, and random questions about it."""

from __future__ import annotations

import json
import random
from typing import Any

from gateway.domain.log import commit_name
from tests.fakes.faulty_log_reader import FaultyLogReader

COLUMNS = {"a": "long", "x": "double", "s": "string", "at": "timestamp", "p": "string", "n": "integer"}
PARTITIONS = ["p", "n"]
# Some end as writers end what they have cut, or as a line does.
_CUT = ["abc?", "abc?\n", "abc?\u2028", "abc\ufffd", "abc\ufffd\n", "b\n"]
_WORDS = ["", "ab", "abc", "ab\u00e4", "b", "c%d", "zz", *_CUT]
_VECTORS = ["ab^-aqEH.-t@S}K{vb[*k^", "cd^-aqEH.-t@S}K{vb[*k^"]


class History:
    """Commits that a seed decides on."""

    def __init__(self, seed: int, *, plain: bool = False) -> None:
        self.random = random.Random(seed)
        self.reader = FaultyLogReader()
        self.version = -1
        self.live: dict[tuple[str, str], dict[str, Any]] = {}
        self._plain = plain
        self._count = 0

    def commit(self, changes: int) -> None:
        self.version += 1
        actions: list[dict[str, Any]] = [{"commitInfo": {"operation": "WRITE"}}]
        if self.version == 0:
            actions += table_actions()
        touched: set[tuple[str, str]] = set()
        for _ in range(changes):
            actions += self._change(touched)
        text = "\n".join(json.dumps(action) for action in actions)
        self.reader.put(commit_name(self.version), text.encode())

    def _change(self, touched: set[tuple[str, str]]) -> list[dict[str, Any]]:
        chance = self.random
        free = [key for key in self.live if key not in touched]
        what = chance.random()
        if free and what < 0.3:
            key = chance.choice(free)
            touched.add(key)
            old = self.live.pop(key)
            removed = [{"remove": _remove(old)}]
            if what < 0.1:
                return removed + self._added({**old, "deletionVector": self._vector()}, touched)
            return removed
        if free and what < 0.4:
            return self._added({**self.live[chance.choice(free)], "size": chance.randrange(10**9)}, touched)
        return self._added(self._file(), touched)

    def _added(self, add: dict[str, Any], touched: set[tuple[str, str]]) -> list[dict[str, Any]]:
        key = _key(add)
        if key in touched:
            return []
        touched.add(key)
        self.live[key] = add
        return [{"add": add}]

    def _file(self) -> dict[str, Any]:
        chance = self.random
        self._count += 1
        odd = not self._plain and chance.random() < 0.05
        partition = {"p": chance.choice([None, *_WORDS]), "n": chance.choice([None, "", "1", "-7", "30"])}
        name = f"s3://archive/orders/{self._count}" if odd else f"p={chance.randrange(4)}/{chance.random()}"
        add = {
            "path": f"{name}.parquet",
            "partitionValues": partition,
            "size": chance.randrange(10**9),
            "modificationTime": 5,
            "dataChange": True,
            "stats": self._stats(),
        }
        if chance.random() < 0.2:
            add["deletionVector"] = self._vector()
        return {name: value for name, value in add.items() if value is not None}

    def _stats(self) -> str | None:
        chance = self.random
        if chance.random() < 0.1:
            return chance.choice([None, "{}", "nonsense", '{"numRecords":3}'])
        low, word = chance.randrange(-50, 50), chance.choice(_WORDS)
        values = {"a": low, "x": low / 3, "s": word, "at": f"2024-01-{low % 28 + 1:02d}T00:00:00.000Z"}
        highs = {
            **values,
            "a": low + chance.randrange(9),
            "x": low / 3 + 1,
            "s": max(word, chance.choice(_WORDS)),
        }
        records = chance.randrange(1, 9)
        nulls = {name: chance.choice([0, 0, 1, records]) for name in values}
        kept = [name for name in values if chance.random() < 0.9]
        stats = {
            "numRecords": records,
            "minValues": {name: values[name] for name in kept if nulls[name] < records},
            "maxValues": {name: highs[name] for name in kept if nulls[name] < records},
            "nullCount": {name: nulls[name] for name in kept},
        }
        return json.dumps(stats, ensure_ascii=False)

    def _vector(self) -> dict[str, Any]:
        place = self.random.choice(_VECTORS)
        offset = self.random.randrange(9)
        return {
            "storageType": "u",
            "pathOrInlineDv": place,
            "offset": offset,
            "sizeInBytes": 40,
            "cardinality": 1,
        }

    def predicate(self) -> str:
        """Return an SQL predicate about some of the columns."""
        chance = self.random
        leaves = [self._leaf() for _ in range(chance.randrange(1, 4))]
        glue = chance.choice([" AND ", " OR "])
        return glue.join(f"NOT ({leaf})" if chance.random() < 0.2 else leaf for leaf in leaves)

    def _leaf(self) -> str:
        chance = self.random
        operator = chance.choice(["=", "<", ">", "<=", ">=", "<>"])
        number = chance.randrange(-55, 55)
        word = chance.choice(_WORDS)
        return chance.choice(
            [
                f"a {operator} {number}",
                f"x {operator} {number / 3}",
                f"s {operator} '{word}'",
                f"at {operator} TIMESTAMP '2024-01-{number % 28 + 1:02d} 00:00:00'",
                f"p {operator} '{word}'",
                f"n {operator} {chance.choice([1, -7, 30, 31])}",
                f"{chance.choice(list(COLUMNS))} IS NULL",
                f"{chance.choice(list(COLUMNS))} IS NOT NULL",
                f"a IN ({number}, {number + 9})",
                f"CAST(n AS STRING) {operator} '3'",
                f"CAST(p AS INT) {operator} 3",
            ]
        )


def _key(add: dict[str, Any]) -> tuple[str, str]:
    vector = add.get("deletionVector")
    return add["path"], f"u{vector['pathOrInlineDv']}@{vector['offset']}" if vector else ""


def _remove(add: dict[str, Any]) -> dict[str, Any]:
    remove = {"path": add["path"], "deletionTimestamp": 5, "dataChange": True}
    if "deletionVector" in add:
        remove["deletionVector"] = add["deletionVector"]
    return remove


def table_actions() -> list[dict[str, Any]]:
    """Return what the first commit says of the table."""
    return [{"protocol": _protocol()}, {"metaData": _metadata()}]


def _protocol() -> dict[str, Any]:
    features = ["deletionVectors"]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }


def _metadata() -> dict[str, Any]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in COLUMNS.items()
    ]
    return {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": PARTITIONS,
        "configuration": {},
        "createdTime": 1,
    }
