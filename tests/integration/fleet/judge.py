"""Whether an answer is right: for this recipient, of this table and version, whole and not expired."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.fleet import Answer
from tests.fleet import Judge as CredentialJudge
from tests.integration.fleet.lake import SCHEMA, SHARE_OF, GrowingTable, Lake

VERSION = "Delta-Table-Version"


class Wrong(Exception):
    """An answer that must never be given."""


class Judge:
    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def shares(self, recipient: str, body: Mapping[str, Any]) -> None:
        _same("shares", [item["name"] for item in body["items"]], [SHARE_OF[recipient]])

    def tables(self, recipient: str, body: Mapping[str, Any]) -> None:
        found = sorted((item["share"], item["schema"], item["name"]) for item in body["items"])
        own = [name for share, name in self._lake.tables if share == SHARE_OF[recipient]]
        names = [*own, *self._lake.directories_of(recipient)]
        _same("tables", found, sorted((SHARE_OF[recipient], SCHEMA, name) for name in names))

    def metadata(
        self, recipient: str, headers: Mapping[str, str], lines: Sequence[bytes], least: int
    ) -> None:
        table = self._lake.table_of(recipient)
        _check_version(table, headers, least)
        _check_head(table, lines)
        _same("lines", len(lines), 2)

    def files(
        self, table: GrowingTable, headers: Mapping[str, str], lines: Sequence[bytes], least: int
    ) -> str:
        """Look at all lines of a stream but its last, and return a URL of it."""
        version = _check_version(table, headers, least)
        _check_head(table, lines)
        files = [json.loads(line)["file"] for line in lines[2:]]
        folder = f"{self._lake.url_folder}/{table.directory.name}"
        paths = [_path(folder, file) for file in files]
        _same("number of files", len(paths), table.sizes[version])
        _same("files", set(paths), table.paths_at(version))
        # A different one each time, and each of a table sooner or later.
        return str(files[int(time.monotonic() * 1000) % len(files)]["url"])

    def file(self, recipient: str, url: str, body: bytes) -> None:
        path = self._lake.table_of(recipient).directory / urlsplit(url).path.rpartition("/")[2]
        _same("content", body, path.read_bytes())

    def credential(self, recipient: str, table: str, body: Mapping[str, Any]) -> None:
        judge = CredentialJudge()
        judge.look(Answer(200, body, {}), recipient, table)
        if judge.verdict:
            raise Wrong(f"credential: {', '.join(judge.verdict)}")


def _check_version(table: GrowingTable, headers: Mapping[str, str], least: int) -> int:
    version = int(headers[VERSION])
    if not least <= version <= table.version:
        raise Wrong(f"version {version}, with {least} committed when it was asked for")
    return version


def _check_head(table: GrowingTable, lines: Sequence[bytes]) -> None:
    protocol, metadata = (json.loads(line) for line in lines[:2])
    _same("protocol", list(protocol), ["protocol"])
    _same("table", metadata["metaData"]["id"], table.id)


def _path(table_folder: str, file: Mapping[str, Any]) -> str:
    """Return which file of the table a line leads to."""
    folder, _, path = urlsplit(file["url"]).path.rpartition("/")
    _same("directory", folder, table_folder)
    if file["expirationTimestamp"] / 1000 <= time.time():
        raise Wrong("an expired URL")
    return str(path)


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Wrong(f"{what}: {str(found)[:200]} in place of {str(expected)[:200]}")
