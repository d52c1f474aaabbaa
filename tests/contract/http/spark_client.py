"""A double of the Spark connector: it sends what that sends, and fails on what that fails on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode

from tests.contract.http.client import Answer, Client, fetch
from tests.contract.http.facts import TableFacts

PARQUET = "responseformat=parquet"
FEATURES = "deletionVectors,columnMapping,timestampNtz,typeWidening-preview,typeWidening,variantType"
DELTA = f"responseformat=delta;readerfeatures={FEATURES}"
BOTH = f"responseformat=parquet,delta;readerfeatures={FEATURES}"
END = ";includeendstreamaction=true"

_USER_AGENT = "Delta-Sharing-Spark/4.0.0 Spark/4.2.0 QueryId-1a2b3c4d Hadoop/3.5.0 Linux java/17"
_UNENCODED = re.compile(r"[A-Za-z0-9_-]+")
# Which lines may follow the first two.
_SNAPSHOT = {"parquet": {"file"}, "delta": {"file"}}
_STREAM = {"parquet": {"add", "remove", "metaData"}, "delta": {"file", "metaData", "protocol"}}
_FEED = {"parquet": {"add", "remove", "cdf", "metaData"}, "delta": {"file", "metaData", "protocol"}}


class SparkFailureError(AssertionError):
    """What the connector would throw."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """An answer that the connector takes."""

    version: int
    response_format: str
    # The first two lines as they came.
    protocol: str
    metadata: str
    # The others, parsed, without the end.
    lines: list[dict[str, Any]]
    # None where there is none.
    end: dict[str, Any] | None

    @property
    def ids(self) -> list[str]:
        return [
            value["id"]
            for line in self.lines
            for kind, value in line.items()
            if "id" in value and kind != "metaData"
        ]

    def actions(self, kind: str) -> list[dict[str, Any]]:
        """Return the actions of the delta format by their name in the log."""
        wrapped = [line["file"]["deltaSingleAction"] for line in self.lines if "file" in line]
        return [action[kind] for action in wrapped if kind in action]


@dataclass(frozen=True)
class SparkClient:
    http: Client
    # Sent on every request, of whatever kind.
    capabilities: str = PARQUET

    def list_tables(self, share: str) -> list[dict[str, Any]]:
        """Page through all tables of a share: any token that is there leads on, even an empty one."""
        found: list[dict[str, Any]] = []
        query = "?maxResults=2"
        for _ in range(100):
            page = self._get(f"/shares/{quote_plus(share)}/all-tables{query}").json()
            found += page.get("items", [])
            if "nextPageToken" not in page:
                return found
            query = f"?maxResults=2&pageToken={quote_plus(page['nextPageToken'])}"
        raise SparkFailureError("the list never ends")

    def version(self, table: TableFacts) -> int:
        return _version(self._get(f"{_path(table)}/version"))

    def metadata(self, table: TableFacts, **query: Any) -> Found:
        """Ask for a table's metadata, by version or time."""
        answer = self._get(f"{_path(table)}/metadata" + (f"?{urlencode(query)}" if query else ""))
        lines = _lines(answer)
        if len(lines) != 2:
            raise SparkFailureError(f"{len(lines)} lines of metadata instead of two")
        return self._checked(answer, lines, _SNAPSHOT)

    def files(self, table: TableFacts, body: Mapping[str, Any] | None = None) -> Found:
        """Ask for a snapshot: of the latest version with a refresh token, of another without."""
        asked = dict(body or {})
        if not {"version", "timestamp"} & set(asked):
            asked = {"includeRefreshToken": True} | asked
        found = self._post(table, asked, _SNAPSHOT)
        if "version" in asked and found.version != asked["version"]:
            raise SparkFailureError(f"version {found.version} instead of {asked['version']}")
        return found

    def stream(self, table: TableFacts, start: int, end: int, **others: Any) -> Found:
        """Ask for what a stream reads next."""
        body = {"startingVersion": start, "endingVersion": end, **others}
        return _with_history(self._post(table, body, _STREAM))

    def feed(self, table: TableFacts, **query: Any) -> Found:
        """Ask for changes, as the connector passes its options on."""
        fields = {"readChangeFeed": "true", **query}
        if self.capabilities != PARQUET:
            fields["includeHistoricalMetadata"] = "true"
        answer = self._get(f"{_path(table)}/changes?{urlencode(fields)}")
        return _with_history(self._checked(answer, _lines(answer), _FEED))

    def all_pages(self, table: TableFacts, size: int, body: Mapping[str, Any] | None = None) -> list[Found]:
        """Ask for pages of a snapshot; only the first asks for a refresh token."""
        asked = {"maxFiles": size, **(body or {})}
        pages = [self._post(table, asked | {"includeRefreshToken": True}, _SNAPSHOT)]
        while token := self._next(pages):
            pages.append(self._post(table, asked | {"pageToken": token}, _SNAPSHOT))
        return pages

    def all_feed_pages(self, table: TableFacts, size: int, **query: Any) -> list[Found]:
        """Ask for pages of changes; the token goes into the URL as it is."""
        pages: list[Found] = []
        token: str | None = ""
        while token is not None:
            path = f"{_path(table)}/changes?{urlencode(query)}&maxFiles={size}"
            answer = self._get(path + (f"&pageToken={token}" if token else ""))
            pages.append(_with_history(self._checked(answer, _lines(answer), _FEED)))
            token = self._next(pages)
        return pages

    def read(self, url: str, size: int) -> bytes:
        """Read a file as the executors do: a range up to its last byte."""
        answer = fetch("GET", url, {"Range": f"bytes=0-{size - 1}"})
        if answer.status != 206:
            raise SparkFailureError(f"status {answer.status} for a range")
        if len(answer.body) != size:
            raise SparkFailureError(f"{len(answer.body)} bytes instead of {size}")
        return answer.body

    def check(self, answer: Answer, kinds: Mapping[str, set[str]] = _SNAPSHOT) -> Found:
        """Take an answer to a query that was made elsewhere."""
        return self._checked(answer, _lines(answer), kinds)

    def _next(self, pages: list[Found]) -> str | None:
        """Return the token of the next page, having compared the latest page with the first."""
        first, last = pages[0], pages[-1]
        for name in ("version", "response_format", "protocol", "metadata"):
            if getattr(first, name) != getattr(last, name):
                raise SparkFailureError(f"the {name} of pages differs")
        token = (last.end or {}).get("nextPageToken")
        if token is not None and not _UNENCODED.fullmatch(token):
            raise SparkFailureError("a token that does not survive a URL")
        if len(pages) > 1000:
            raise SparkFailureError("the pages never end")
        return token

    def _get(self, path: str) -> Answer:
        return self.http.get(path, self._headers())

    def _post(self, table: TableFacts, body: Mapping[str, Any], kinds: Mapping[str, set[str]]) -> Found:
        answer = self.http.post(f"{_path(table)}/query", dict(body), self._headers())
        return self._checked(answer, _lines(answer), kinds)

    def _headers(self) -> dict[str, str]:
        return {"delta-sharing-capabilities": self.capabilities, "User-Agent": _USER_AGENT}

    def _checked(self, answer: Answer, lines: list[str], kinds: Mapping[str, set[str]]) -> Found:
        said = _capabilities(answer)
        response_format = said.get("responseformat", "parquet")
        if response_format not in self.capabilities.split(";")[0]:
            raise SparkFailureError(f"{response_format} was not asked for")
        end = json.loads(lines[-1]).get("endStreamAction")
        _check_end(said, end)
        found = Found(
            version=_version(answer),
            response_format=response_format,
            protocol=lines[0],
            metadata=lines[1],
            lines=[json.loads(line) for line in (lines[2:] if end is None else lines[2:-1])],
            end=end,
        )
        _check_head(found)
        for line in found.lines:
            _check_line(line, kinds[response_format], response_format)
        return found


def _path(table: TableFacts) -> str:
    names = [quote_plus(name) for name in (table.share, table.schema, table.name)]
    return "/shares/{}/schemas/{}/tables/{}".format(*names)


def _lines(answer: Answer) -> list[str]:
    if answer.status != 200:
        raise SparkFailureError(f"status {answer.status}: {answer.body.decode()}")
    return answer.body.decode().split("\n")[:-1]


def _version(answer: Answer) -> int:
    text = answer.headers["Delta-Table-Version"]
    if text is None:
        raise SparkFailureError("no Delta-Table-Version")
    return int(text)


def _capabilities(answer: Answer) -> dict[str, str]:
    text = (answer.headers["delta-sharing-capabilities"] or "").lower()
    parts = [part.split("=") for part in text.split(";")]
    return {part[0]: part[1] for part in parts if len(part) == 2}


def _check_end(said: Mapping[str, str], end: Mapping[str, Any] | None) -> None:
    if said.get("includeendstreamaction") != "true":
        return
    if end is None:
        raise SparkFailureError("the end that was announced is missing")
    if "errorMessage" in end:
        raise SparkFailureError(str(end["errorMessage"]))


def _check_head(found: Found) -> None:
    protocol, metadata = json.loads(found.protocol)["protocol"], json.loads(found.metadata)["metaData"]
    if found.response_format == "parquet":
        if protocol["minReaderVersion"] > 2:
            raise SparkFailureError("a protocol that it does not read")
        if not isinstance(json.loads(metadata["schemaString"]), dict):
            raise SparkFailureError("no schema")
    elif "deltaProtocol" not in protocol or "deltaMetadata" not in metadata:
        raise SparkFailureError("no Delta protocol or metadata")


def _check_line(line: Mapping[str, Any], known: set[str], response_format: str) -> None:
    ((kind, value),) = line.items()
    if kind not in known:
        raise SparkFailureError(f"an unexpected line of {kind}")
    if kind in {"metaData", "protocol"}:
        return
    if not value.get("id"):
        raise SparkFailureError("a file without an id")
    if response_format == "delta":
        _check_action(value)
    elif not value.get("url") or value.get("size") is None or value.get("partitionValues") is None:
        raise SparkFailureError("a file without a URL, a size or partition values")


def _check_action(file: Mapping[str, Any]) -> None:
    ((kind, action),) = file["deltaSingleAction"].items()
    if kind not in {"add", "remove", "cdc"} or not action.get("path") or action.get("size") is None:
        raise SparkFailureError(f"an action {kind} without a path or a size")
    vector = action.get("deletionVector")
    if vector is None:
        return
    if kind == "cdc":
        raise SparkFailureError("a file of changes with a deletion vector")
    if vector["storageType"] not in {"p", "i"}:
        raise SparkFailureError(f"a deletion vector of the storage type {vector['storageType']}")
    if vector["storageType"] == "p" and not file.get("deletionVectorFileId"):
        raise SparkFailureError("a deletion vector without the id of its file")


def _with_history(found: Found) -> Found:
    """Return an answer about several versions, having checked that each file tells its own."""
    for line in found.lines:
        ((kind, value),) = line.items()
        if kind not in {"metaData", "protocol"} and not {"version", "timestamp"} <= set(value):
            raise SparkFailureError(f"a line of {kind} without a version or a time")
    return found
