"""Random logs of every kind, and what a plain replay of their commits says of each version."""

from __future__ import annotations

import io
import json
import random
import uuid
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import polars as pl

from gateway.demo.checkpoint import to_checkpoint, to_sidecars, to_v2_checkpoint
from gateway.domain.log import checkpoint_name, commit_name, compaction_name, version_prefix
from tests.fakes.faulty_log_reader import STARTED_AT, FaultyLogReader

Action = dict[str, Any]
Key = tuple[str, str | None]

_PATHS = [*(f"part-{n}.parquet" for n in range(9)), "p=a%20b/ü.parquet", "s3://other/x.parquet"]
_STATS = pl.Struct(
    {
        "numRecords": pl.Int64,
        "minValues": pl.Struct({"a": pl.Int64, "s": pl.String}),
        "maxValues": pl.Struct({"a": pl.Int64, "s": pl.String}),
        "nullCount": pl.Struct({"a": pl.Int64, "s": pl.Int64}),
    }
)


class State:
    """What the commits up to a version come to, one action at a time."""

    def __init__(self) -> None:
        self.adds: dict[Key, Action] = {}
        self.removes: dict[Key, Action] = {}
        self.protocol: Action = {}
        self.metadata: Action = {}
        self.others: dict[str, Action] = {}

    def apply(self, actions: Iterable[Action]) -> State:
        for action in actions:
            [(kind, fields)] = action.items()
            if kind == "add":
                self.removes.pop(key_of(fields), None)
                self.adds.pop(key_of(fields), None)
                self.adds[key_of(fields)] = fields
            elif kind == "remove":
                self.adds.pop(key_of(fields), None)
                self.removes[key_of(fields)] = fields
            elif kind == "protocol":
                self.protocol = fields
            elif kind == "metaData":
                self.metadata = fields
            elif kind in {"txn", "domainMetadata"}:
                self.others[kind] = action
        return self

    def copy(self) -> State:
        copied = State()
        copied.adds, copied.removes, copied.others = dict(self.adds), dict(self.removes), dict(self.others)
        copied.protocol, copied.metadata = self.protocol, self.metadata
        return copied

    def files(self) -> list[Action]:
        added = [{"add": add} for add in self.adds.values()]
        return [*added, *({"remove": remove} for remove in self.removes.values())]

    def table(self) -> list[Action]:
        stated = {"protocol": self.protocol, "metaData": self.metadata}
        return [*({kind: fields} for kind, fields in stated.items() if fields), *self.others.values()]


class GeneratedLog:
    """A log that a seed decides on all by itself."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.reader = FaultyLogReader()
        self.commits: list[list[Action]] = []
        self.states: list[State] = []
        # The first version that the log still has.
        self.first = 0
        for _ in range(self.random.randint(1, 14)):
            self._commit()
        for version in range(len(self.commits)):
            if self.random.random() < 0.3:
                self._checkpoint(version)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            self._compact()
        checkpoints = self.checkpoints()
        if checkpoints and self.random.random() < 0.3:
            self._clean_up(self.random.choice(sorted(checkpoints)))
        elif checkpoints and self.random.random() < 0.4:
            self._damage(self.random.choice(checkpoints[max(checkpoints)]))
        self._strew()

    @property
    def latest(self) -> int:
        return len(self.commits) - 1

    def checkpoints(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in self.reader.files:
            if ".checkpoint." in name:
                found.setdefault(int(name[:20]), []).append(name)
        return found

    def _commit(self) -> None:
        version = len(self.commits)
        before = self.states[-1] if self.states else State()
        actions = self._actions(before, version)
        self.commits.append(actions)
        self.states.append(before.copy().apply(actions))
        ends = self.random.choice(["", "\n", "\n\n"])
        glue = self.random.choice(["\n", "\n", "\n\n"])
        lines = glue.join(json.dumps(action, ensure_ascii=self.random.random() < 0.5) for action in actions)
        self._put(commit_name(version), (lines + ends).encode())

    def _actions(self, before: State, version: int) -> list[Action]:
        chance = self.random
        actions: list[Action] = [{"commitInfo": {"operation": "WRITE", "inCommitTimestamp": version}}]
        if version == 0 or chance.random() < 0.1:
            actions.append({"protocol": self._protocol()})
        if version == 0 or chance.random() < 0.1:
            actions.append({"metaData": self._metadata(version)})
        files: dict[Key, Action] = {}
        for _ in range(chance.choice([0, 1, 3, 6])):
            for action in self._change(before):
                files.setdefault(key_of(next(iter(action.values()))), action)
        shuffled = list(files.values())
        chance.shuffle(shuffled)
        actions += shuffled
        others: list[Action] = [
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
            {"txn": {"appId": "a", "version": version}},
            {"newAction": {"path": "part-0.parquet", "deep": [{"x": [1, None]}]}},
            {"cdc": {"path": "_change_data/x", "partitionValues": {}, "size": 1}},
        ]
        return [*actions, *(action for action in others if chance.random() < 0.3)]

    def _change(self, before: State) -> list[Action]:
        """Return an add, a remove, or both: of a file that gets another deletion vector."""
        live = list(before.adds.values())
        what = self.random.random()
        if live and what < 0.25:
            return [self._remove(self.random.choice(live))]
        if live and what < 0.5:
            old = self.random.choice(live)
            return [self._remove(old), {"add": {**old, "deletionVector": self._vector()}}]
        if live and what < 0.6:
            return [{"add": {**self.random.choice(live), "size": self.random.randrange(10**6)}}]
        if what < 0.7:
            return [self._remove({"path": self.random.choice(_PATHS)})]
        return [{"add": self._add()}]

    def _add(self) -> Action:
        chance = self.random
        stats = {
            "numRecords": chance.randrange(100),
            "minValues": {"a": chance.randrange(-9, 9), "s": 'ä"\u2028'},
            "maxValues": {"a": 2**60, "s": "z" * chance.randrange(4)},
            "nullCount": {"a": 0, "s": chance.randrange(3)},
        }
        optional: Action = {
            "stats": json.dumps(stats, separators=(",", ":"), ensure_ascii=False),
            "tags": chance.choice([None, {}, {"k": "v", "n": None}]),
            "deletionVector": self._vector() if chance.random() < 0.5 else None,
            "baseRowId": chance.randrange(2**40),
            "defaultRowCommitVersion": chance.randrange(9),
            "clusteringProvider": "liquid",
            "someFuture": {"field": 1},
        }
        return {
            "path": chance.choice(_PATHS),
            "partitionValues": chance.choice([{}, {"p": None}, {"p": ""}, {"p": "a b", "q": "\u0085"}]),
            "size": chance.randrange(10**12),
            "modificationTime": chance.randrange(10**13),
            "dataChange": chance.random() < 0.5,
            **{name: value for name, value in optional.items() if chance.random() < 0.5},
        }

    def _remove(self, add: Mapping[str, Any]) -> Action:
        remove = {"path": add["path"], "deletionTimestamp": 5, "dataChange": True}
        if add.get("deletionVector"):
            remove["deletionVector"] = add["deletionVector"]
        if self.random.random() < 0.5 and "size" in add:
            remove |= {"extendedFileMetadata": True, "size": add["size"], "partitionValues": {}}
        return {"remove": remove}

    def _vector(self) -> Action:
        kind = self.random.choice("uip")
        place = {"u": "ab^-aqEH.-t@S}K{vb[*k^", "i": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
        vector = {
            "storageType": kind,
            "pathOrInlineDv": place.get(kind, "s3://other/dv.bin"),
            "sizeInBytes": 40,
            "cardinality": self.random.randrange(1, 9),
        }
        return vector if kind == "i" else {**vector, "offset": self.random.choice([1, 2, 3])}

    def _protocol(self) -> Action:
        features = self.random.choice([["deletionVectors"], ["deletionVectors", "v2Checkpoint"]])
        newer = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features}
        older = {"minReaderVersion": self.random.choice([1, 2]), "minWriterVersion": 5}
        return self.random.choice([{**newer, "writerFeatures": [*features, "rowTracking"]}, older])

    def _metadata(self, version: int) -> Action:
        return {
            "id": "t",
            "name": self.random.choice([None, "name"]),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": [], "version": version}),
            "partitionColumns": self.random.choice([[], ["p"]]),
            "configuration": self.random.choice([{}, {"delta.appendOnly": "false"}]),
            "createdTime": version,
        }

    def _checkpoint(self, version: int) -> None:
        state = self.states[version]
        files, table = state.files(), state.table()
        parsed = _STATS if self.random.random() < 0.4 else None
        kind = self.random.choice(["classic", "parts", "v2", "v2", "v2 classic"])
        if kind == "classic":
            [content] = to_checkpoint([*table, *files], parsed=parsed)
            self._put(checkpoint_name(version), self._slim(content, parsed))
        elif kind == "parts":
            self._parts(version, [*table, *files], parsed)
        else:
            self._v2(version, [*table], files, parsed, named=kind == "v2")

    def _parts(self, version: int, actions: list[Action], parsed: pl.Struct | None) -> None:
        count = self.random.randint(2, 4)
        contents = to_checkpoint(actions, count, parsed)
        for part, content in enumerate(contents, 1):
            self._put(checkpoint_name(version, part, count), self._slim(content, parsed))
        if self.random.random() < 0.2:
            self.reader.remove(checkpoint_name(version, self.random.randint(1, count), count))

    def _v2(
        self, version: int, table: list[Action], files: list[Action], parsed: pl.Struct | None, *, named: bool
    ) -> None:
        table.append({"checkpointMetadata": {"version": version, "tags": {}}})
        if self.random.random() < 0.7:
            for content in to_sidecars(files, self.random.randint(1, 3), parsed):
                name = f"{self._uuid()}.parquet"
                self._put(f"_sidecars/{name}", self._slim(content, parsed))
                table.append({"sidecar": {"path": name, "sizeInBytes": len(content), "modificationTime": 0}})
            files = []
        self.random.shuffle(table)
        if named and self.random.random() < 0.5:
            lines = "\n".join(json.dumps(action) for action in [*table, *files])
            self._put(f"{version_prefix(version)}.checkpoint.{self._uuid()}.json", lines.encode())
            return
        name = f"{version_prefix(version)}.checkpoint.{self._uuid()}.parquet"
        self._put(name if named else checkpoint_name(version), to_v2_checkpoint([*table, *files], parsed))

    def _slim(self, content: bytes, parsed: pl.Struct | None) -> bytes:
        """Return a checkpoint as it is, or with nothing but parsed statistics."""
        if parsed is None or self.random.random() < 0.5:
            return content
        frame = pl.read_parquet(io.BytesIO(content))
        kept = [name for name in frame["add"].struct.fields if name != "stats"]
        slim = pl.struct(pl.col("add").struct.field(name) for name in kept)
        buffer = io.BytesIO()
        frame.with_columns(pl.when(pl.col("add").is_not_null()).then(slim).alias("add")).write_parquet(buffer)
        return buffer.getvalue()

    def _compact(self) -> None:
        if self.latest < 1:
            return
        first = self.random.randrange(self.latest)
        last = self.random.randint(first + 1, self.latest)
        state = State()
        for actions in self.commits[first : last + 1]:
            state.apply(actions)
        added = [{"add": add} for add in state.adds.values()]
        removed = [{"remove": remove} for remove in state.removes.values()]
        content = "\n".join(json.dumps(action) for action in [*state.table(), *removed, *added])
        if self.random.random() < 0.2:
            content = content[: self.random.randrange(len(content) + 1)] + '{"add":'
        self._put(compaction_name(first, last), content.encode())

    def _clean_up(self, version: int) -> None:
        """Leave nothing that is older than a checkpoint."""
        if not self._is_whole(version):
            return
        self.first = version
        for name in list(self.reader.files):
            if not name[:20].isdecimal():
                continue
            covered = name.endswith(".compacted.json") and int(name[:20]) <= version
            if int(name[:20]) < version or covered:
                self.reader.remove(name)

    def _is_whole(self, version: int) -> bool:
        names = self.checkpoints()[version]
        counts = [int(name.split(".")[3]) for name in names if name.count(".") == 4]
        return not counts or len(names) == counts[0]

    def _damage(self, name: str) -> None:
        content = self.reader.files[name]
        cut = content[: self.random.randrange(len(content))]
        self.reader.files[name] = self.random.choice([b"", cut + b'{"add":', b"\0" * 50])

    def _strew(self) -> None:
        """Put what a replay has no use for."""
        hint = self.random.choice([b"", b"{}", b'{"version":3}', b'{"version":99}', b"nonsense"])
        for name in ("_last_checkpoint", "00000000000000000000.crc", "00000000000000000001.json.tmp"):
            if self.random.random() < 0.5:
                self._put(name, hint)

    def _put(self, name: str, content: bytes) -> None:
        self.reader.put(name, content, STARTED_AT + timedelta(minutes=len(self.commits)))

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128)))


def key_of(fields: Mapping[str, Any]) -> Key:
    vector = fields.get("deletionVector")
    if not vector:
        return fields["path"], None
    offset = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return fields["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"
