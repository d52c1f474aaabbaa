"""The gateway in processes of its own, as the HTTP suite needs it: real tables, real services."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from gateway.commands.bearer import hash_of
from tests.builders import Field, TableBuilder, with_features
from tests.contract.http import plugin
from tests.contract.http.facts import Gateway, ShareFacts, TableFacts
from tests.deployments import Deployment, Settings

_BODY_LIMIT = 64 * 1024
_SLOW_BURST = 3
_FIELDS = (Field("number", "long"), Field("day", "string"))
# Ends a line for those who split at separators of all scripts.
_ODD = "counted\u2028by\u0085hand"
_SHARE_OF_BOTH = "Sales"
_BOTH = ("url", "dir")
_MANY = {"requestsPerSecond": 100_000, "burst": 100_000}
_DESCRIBED = ShareFacts(
    name="Finance",
    id="6c1f7a52-7c3b-4b58-a3c0-0f1c4a2f7d10",
    display_name="Finance \u2014 Q3",
    comment="books\nand \u2028 ledgers",
    properties={"owner": "ann", "region": "eu"},
)


@dataclass(frozen=True)
class _Entry:
    share: str
    schema: str
    name: str
    files: int = 2
    history: bool = False
    modes: tuple[str, ...] = ("url",)
    auxiliary: bool = False
    partitioned: bool = False
    start_version: int = 0
    build: Callable[[Path], TableBuilder] | None = None


def _change_feed(directory: Path) -> TableBuilder:
    table = TableBuilder(directory, _FIELDS, **with_features("changeDataFeed")).create()
    table.append(_rows("monday", 4), files=2)
    table.update(pl.col("number") == 0, number=pl.lit(100))
    table.delete(pl.col("number") == 3)
    return table.describe(description="counted on tuesday").append(_rows("tuesday", 1))


def _vectors(directory: Path) -> TableBuilder:
    table = TableBuilder(directory, _FIELDS, **with_features("deletionVectors"))
    return table.append(_rows("monday", 8), files=4).delete_by_vector(pl.col("number") == 1)


_TABLES = {
    "plain": _Entry("Sales", "eu", "orders", partitioned=True),
    "large": _Entry("Sales", "eu", "clicks", files=2500),
    "history": _Entry("Sales", "us", "prices", history=True),
    "bounded": _Entry("Sales", "us", "ledger", history=True, start_version=1),
    "change_feed": _Entry("Sales", "us", "stock", files=3, history=True, build=_change_feed),
    "vectors": _Entry("Sales", "us", "readings", files=4, history=True, build=_vectors),
    "dir_only": _Entry("Sales", "us", "scans", history=True, modes=("dir",)),
    "both_modes": _Entry("Sales", "us", "trips", history=True, modes=("url", "dir"), auxiliary=True),
    "hidden": _Entry("Payroll", "eu", "salaries"),
}


Start = Callable[[Path, Settings], AbstractContextManager[Deployment]]


@dataclass(frozen=True)
class Lake:
    """The tables of the suite, which any number of deployments may share: they read them."""

    directory: Path
    tables: dict[str, TableFacts]


def build_lake(directory: Path) -> Lake:
    return Lake(directory, {kind: _build(directory, entry) for kind, entry in _TABLES.items()})


@contextmanager
def gateway_in(start: Start, lake: Lake) -> Iterator[Gateway]:
    """Start a deployment that shares the tables, and give the facts of it."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        settings = _settings(lake.directory, lake.tables)
        with plugin.installed(directory / "installed"), start(directory / "run", settings) as deployment:
            yield Gateway(
                url=deployment.base_url,
                token="token-of-ann",
                other_token="token-of-cleo",
                expired_token="token-of-yesterday",
                disabled_token="token-of-bob",
                slow_token="token-of-slow",
                slow_burst=_SLOW_BURST,
                shares=("Archive", "Finance", "Sales"),
                described=_DESCRIBED,
                body_limit=_BODY_LIMIT,
                serves_files=True,
                **lake.tables,
            )


def _build(lake: Path, entry: _Entry) -> TableFacts:
    directory = lake / entry.share / entry.name
    builder = (entry.build or partial(_in_halves, entry))(directory)
    return TableFacts(
        share=entry.share,
        schema=entry.schema,
        name=entry.name,
        id=f"id-of-{entry.name}",
        share_id=_share_id(entry.share),
        version=builder.version,
        files=entry.files,
        size=sum(add["size"] for add in builder.live.values()),
        location=str(directory),
        access_modes=entry.modes,
        auxiliary_locations=(str(lake / "auxiliary" / entry.name),) if entry.auxiliary else (),
        partition_columns=("day",) if entry.partitioned else (),
    )


def _in_halves(entry: _Entry, directory: Path) -> TableBuilder:
    partition_by = ("day",) if entry.partitioned else ()
    builder = TableBuilder(directory, _FIELDS, partition_by=partition_by, metadata={"description": _ODD})
    half = entry.files // 2
    for day, files in (("monday", half), ("tuesday", entry.files - half)):
        builder.append(_rows(day, files), files=files)
    return builder


def _rows(day: str, count: int) -> list[dict[str, Any]]:
    return [{"number": number, "day": day} for number in range(count)]


def _settings(lake: Path, tables: dict[str, TableFacts]) -> Settings:
    return {
        "version": 1,
        "shares": [_share(name, tables) for name in ("Sales", "Payroll", "Archive", "Finance")],
        "storages": [{"name": "lake", "prefix": str(lake), "vendor": plugin.NAME}],
        "recipients": [
            _recipient("ann", tokens=[_token("ann"), _token("yesterday", expires="2020-01-01T00:00:00Z")]),
            _recipient("cleo"),
            _recipient("slow", rate={"requestsPerSecond": 0.001, "burst": _SLOW_BURST}),
            _recipient("bob", disabled=True),
        ],
        "limits": {"rate": _MANY},
        "http": {"bodyLimit": _BODY_LIMIT},
    }


def _share(name: str, tables: dict[str, TableFacts]) -> dict[str, Any]:
    own = [(kind, facts) for kind, facts in tables.items() if facts.share == name]
    schemas = dict.fromkeys(facts.schema for _, facts in own)
    share: dict[str, Any] = {
        "name": name,
        "id": _share_id(name),
        "schemas": [
            {"name": schema, "tables": [_table(*pair) for pair in own if pair[1].schema == schema]}
            for schema in schemas
        ],
    }
    if name == _SHARE_OF_BOTH:
        share["accessModes"] = list(_BOTH)
    if name == _DESCRIBED.name:
        share |= {
            "displayName": _DESCRIBED.display_name,
            "comment": _DESCRIBED.comment,
            "properties": dict(_DESCRIBED.properties),
        }
    return share


def _table(kind: str, facts: TableFacts) -> dict[str, Any]:
    table = {
        "name": facts.name,
        "id": facts.id,
        "location": facts.location,
        "historyShared": _TABLES[kind].history,
        "startVersion": _TABLES[kind].start_version,
        "auxiliaryLocations": list(facts.auxiliary_locations),
    }
    # What is left out is the share's.
    is_inherited = facts.share == _SHARE_OF_BOTH and facts.access_modes == _BOTH
    return table if is_inherited else table | {"accessModes": list(facts.access_modes)}


def _share_id(name: str) -> str:
    return _DESCRIBED.id if name == _DESCRIBED.name else f"id-of-{name}"


def _recipient(name: str, **others: Any) -> dict[str, Any]:
    return {"name": name, "tokens": [_token(name)], "shares": ["Archive", "Finance", "Sales"], **others}


def _token(name: str, **others: Any) -> dict[str, Any]:
    return {"hash": hash_of(f"token-of-{name}"), **others}
