"""What the fleet shares: a table of many files that grows and a directory, twice, and who may see which."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.commands.bearer import hash_of
from gateway.demo.data_file import DataFile
from gateway.demo.schema import Field
from gateway.demo.table_builder import TableBuilder
from tests.e2e.url_stores import UrlStore
from tests.fleet import LIFE, RATES

SCHEMA, TABLE, LONG_TABLE = "default", "orders", "ledger"
STORAGE = "disk"
# Each recipient sees one share; the names of schemas and tables are the same in both.
SHARE_OF: Mapping[str, str] = {"ana": "alpha", "bo": "beta"}
# More than two pages; and so many that an answer is still under way when a slow reader has its beginning.
FILES, MANY_FILES = 2_500, 10_000
_FILES_PER_COMMIT = 5
# Enough that some have no credential yet whenever a scenario comes to ask.
_DIRECTORIES = 100


class GrowingTable(TableBuilder):
    """A table that is written to while it is read."""

    def __init__(self, directory: Path, files: int) -> None:
        super().__init__(directory, [Field("number", "integer")])
        # The paths of all files, in the order of their commits, and how many of them each version has.
        self.paths: list[str] = []
        self.sizes: list[int] = []
        # The version that every reader must know of by now.
        self.committed = -1
        self.grow(files)
        self.checkpoint()

    @property
    def id(self) -> str:
        return str(self.metadata["id"])

    def grow(self, files: int = _FILES_PER_COMMIT) -> None:
        actions = [self.place(DataFile(content=self._content(), stats=None), {}) for _ in range(files)]
        self.paths += [action["add"]["path"] for action in actions]
        self.sizes.append(len(self.paths))
        self.commit(*actions)
        self.committed = self.version

    def paths_at(self, version: int) -> set[str]:
        return set(self.paths[: self.sizes[version]])

    def _content(self) -> bytes:
        return f"{self.directory.name}/{self._named['']}".encode()

    def _write_log(self, name: str, content: bytes) -> None:
        # A reader sees a commit whole, or not at all, as on every store.
        super()._write_log(f"{name}.tmp", content)
        (self.log / f"{name}.tmp").replace(self.log / name)


class LongTable(GrowingTable):
    """A log alone: nobody fetches the files that it names."""

    def _write_data(self, key: str, content: bytes) -> Path:
        return self.directory / key


@dataclass(frozen=True)
class Lake:
    """Tables on the disk of the edges, and directories that a token service opens."""

    directory: Path
    # By share and name.
    tables: Mapping[tuple[str, str], GrowingTable]
    tokens: Mapping[str, str] = field(repr=False)

    @property
    def url_folder(self) -> str:
        """Return what comes before a table's directory in the path of a URL."""
        return f"/delta-sharing/files/{STORAGE}"

    @property
    def recipients(self) -> Sequence[str]:
        return tuple(SHARE_OF)

    def directories_of(self, recipient: str) -> Sequence[str]:
        """Return the tables that are shared by directory; they lie where the token service has them."""
        return [f"{SHARE_OF[recipient]}-{number:03d}" for number in range(_DIRECTORIES)]

    def table_of(self, recipient: str, name: str = TABLE) -> GrowingTable:
        return self.tables[SHARE_OF[recipient], name]

    def grow(self) -> None:
        for recipient in self.recipients:
            self.table_of(recipient).grow()

    def settings(self, sts: str) -> dict[str, Any]:
        """Return what all processes are told of it; credentials for directories come from a token service."""
        disk = {"name": STORAGE, "prefix": str(self.directory), "vendor": "local"}
        return self._settings(str(self.directory), [disk, _directories(sts)])

    def _settings(self, prefix: str, storages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "version": 1,
            "shares": [self._share(recipient, prefix) for recipient in self.recipients],
            "recipients": [
                {"name": name, "tokens": [{"hash": hash_of(token)}], "shares": [SHARE_OF[name]]}
                for name, token in self.tokens.items()
            ],
            "storages": list(storages),
            "limits": RATES,
        }

    def _share(self, recipient: str, prefix: str) -> dict[str, Any]:
        files = [
            {"name": name, "location": f"{prefix}/{table.directory.name}"}
            for (share, name), table in self.tables.items()
            if share == SHARE_OF[recipient]
        ]
        directories = [
            {
                "name": name,
                "location": f"s3://lake/tables/{name}",
                "historyShared": True,
                "accessModes": ["dir"],
            }
            for name in self.directories_of(recipient)
        ]
        schema = {"name": SCHEMA, "tables": [*files, *directories]}
        return {"name": SHARE_OF[recipient], "schemas": [schema]}


@dataclass(frozen=True)
class UploadedLake(Lake):
    """The same with tables on a store, where they stay as they are."""

    store: UrlStore

    @property
    def url_folder(self) -> str:
        return urlsplit(self.store.origin).path.rstrip("/")

    def grow(self) -> None:
        """Do nothing."""

    def settings(self, sts: str) -> dict[str, Any]:
        return self._settings(self.store.prefix, [self.store.storage, _directories(sts)])


def new_lake(directory: Path) -> Lake:
    """Write the tables."""
    long = {
        (share, LONG_TABLE): LongTable(directory / f"{share}-{LONG_TABLE}", MANY_FILES)
        for share in SHARE_OF.values()
    }
    return Lake(directory=directory, tables=_tables(directory, FILES) | long, tokens=_tokens())


def uploaded_lake(directory: Path, store: UrlStore, files: int) -> UploadedLake:
    """Write smaller tables, and copy their logs to a store."""
    lake = UploadedLake(directory=directory, tables=_tables(directory, files), tokens=_tokens(), store=store)
    for table in lake.tables.values():
        for file in table.log.iterdir():
            store.put(file.relative_to(directory).as_posix(), file.read_bytes())
    return lake


def _tables(directory: Path, files: int) -> dict[tuple[str, str], GrowingTable]:
    # A table's id is made from the name of its directory.
    return {
        (share, TABLE): GrowingTable(directory / f"{share}-{TABLE}", files) for share in SHARE_OF.values()
    }


def _tokens() -> dict[str, str]:
    return {recipient: secrets.token_urlsafe(24) for recipient in SHARE_OF}


def _directories(sts: str) -> dict[str, Any]:
    return {
        "name": "lake",
        "prefix": "s3://lake",
        "vendor": "s3",
        "credentialLife": f"{int(LIFE.total_seconds())}s",
        "options": {
            "profile": "custom",
            "capabilities": {"inlinePolicy": True},
            "endpoint": sts,
            "identity": {
                "kind": "keys",
                "accessKeyId": "gateway",
                "secretAccessKey": {"value": "of the gateway"},
            },
        },
    }
