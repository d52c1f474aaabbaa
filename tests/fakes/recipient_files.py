"""A gateway and a store for a recipient's library, without a network, at a time that a test sets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sluice_recipient.transport import Request, Response

from tests.fakes.recipient_transport import NOON, error, unreachable

STORE = "https://store.example"
SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
)


@dataclass
class FakeShare:
    """One table. What is committed to it later is not part of what a refresh token leads to."""

    # The contents of files by their ids, of each version.
    versions: list[dict[str, bytes]]
    now: datetime = NOON
    life: timedelta = timedelta(hours=1)
    page_size: int = 10_000
    gives_refresh_tokens: bool = True
    tells_expirations: bool = True
    response_format: str = "parquet"
    partition_values: dict[str, Any] = field(default_factory=dict)
    # Statuses that the store answers with before it looks at a request.
    hiccups: list[int] = field(default_factory=list)
    knows_ranges: bool = True
    # The gateway alone.
    is_away: bool = False
    expired_status: int = 403
    # The bodies of queries, and the files that were asked for.
    queries: list[dict[str, Any]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    # URLs that were given out before this moment are not taken any more.
    void_before: datetime = NOON

    def clock(self) -> datetime:
        return self.now

    def send(self, request: Request) -> Response:
        if request.url.startswith(STORE):
            return self._fetch(request)
        assert request.url.endswith("/query"), request.url
        if self.is_away:
            raise unreachable()
        body = json.loads(request.body or b"")
        self.queries.append(body)
        return self._answer(body)

    def _answer(self, body: dict[str, Any]) -> Response:
        start, version = 0, len(self.versions) - 1
        if token := body.get("pageToken") or body.get("refreshToken"):
            start, version, given = json.loads(token)
            if "refreshToken" in body and self.now - datetime.fromisoformat(given) > timedelta(hours=24):
                return error(400, "the refresh token has expired")
        version = body.get("version", version)
        ids = sorted(self.versions[version])
        size = min(body["maxFiles"], self.page_size)
        end = self._end(body, version, start + size if start + size < len(ids) else None)
        head = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"schemaString": SCHEMA}}]
        files = [{"file": self._file(id_, version)} for id_ in ids[start : start + size]]
        told = [{"endStreamAction": end}] if end is not None else []
        lines = "".join(json.dumps(line) + "\n" for line in [*head, *files, *told])
        said = f"responseformat={self.response_format};includeendstreamaction={str(end is not None).lower()}"
        headers = {"delta-table-version": str(version), "delta-sharing-capabilities": said}
        return Response(status=200, headers=headers, body=lines.encode())

    def _end(self, body: dict[str, Any], version: int, following: int | None) -> dict[str, Any] | None:
        if not self.gives_refresh_tokens:
            return None
        end: dict[str, Any] = {}
        if body.get("includeRefreshToken"):
            end["refreshToken"] = json.dumps([0, version, self.now.isoformat()])
        if following is not None:
            end["nextPageToken"] = json.dumps([following, version, self.now.isoformat()])
        return end

    def _file(self, id_: str, version: int) -> dict[str, Any]:
        expires = int((self.now + self.life).timestamp() * 1000)
        given = int(self.now.timestamp())
        told = {"expirationTimestamp": expires} if self.tells_expirations else {}
        return {
            "url": f"{STORE}/{id_}?e={expires}&given={given}&sig=s3cr3t",
            "id": id_,
            "size": len(self.versions[version][id_]),
            "partitionValues": self.partition_values,
            **told,
        }

    def _fetch(self, request: Request) -> Response:
        assert "Authorization" not in request.headers, "a file was asked for with the token"
        parts = urlsplit(request.url)
        id_, query = parts.path.removeprefix("/"), dict(parse_qsl(parts.query))
        self.fetched.append(id_)
        if self.hiccups:
            return Response(status=self.hiccups.pop(0))
        now = self.now.timestamp()
        if int(query["e"]) / 1000 <= now or int(query["given"]) < self.void_before.timestamp():
            return Response(status=self.expired_status)
        content = next((version[id_] for version in reversed(self.versions) if id_ in version), None)
        if content is None:
            return Response(status=404)
        if not self.knows_ranges:
            return Response(status=200, body=content)
        first, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
        return Response(status=206, body=content[first : last + 1])
