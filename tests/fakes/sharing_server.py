"""A small sharing server over given answers, which can throttle, break off and page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass
class FakeTable:
    """What the server says of a table. ``files`` have no url: it comes from ``contents``."""

    entry: Json = field(default_factory=dict)
    version: int = 3
    protocol: Json = field(default_factory=lambda: {"minReaderVersion": 1})
    metadata: Json = field(default_factory=dict)
    files: list[Json] = field(default_factory=list)
    # Content by file id.
    contents: dict[str, bytes] = field(default_factory=dict)
    # Status by call: version, metadata or query.
    errors: dict[str, int] = field(default_factory=dict)
    tail: bytes = b""
    # Answered in delta format, and only to who asks for it.
    is_delta: bool = False


@dataclass
class FakeSharingServer:
    shares: dict[str, Json] = field(default_factory=dict)
    # By share, schema and table.
    tables: dict[tuple[str, str, str], FakeTable] = field(default_factory=dict)
    extra_schemas: dict[str, Sequence[str]] = field(default_factory=dict)
    token: str = "fake-token-0123456789"
    page_size: int = 100
    has_all_tables: bool = True
    has_get_version: bool = True
    # Answers to give before the real one: a status and headers.
    hiccups: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        table = "/s/shares/{share}/schemas/{schema}/tables/{table}"
        app.router.add_get("/s/shares", self._shares)
        app.router.add_get("/s/shares/{share}/schemas", self._schemas)
        app.router.add_get("/s/shares/{share}/schemas/{schema}/tables", self._tables)
        if self.has_all_tables:
            app.router.add_get("/s/shares/{share}/all-tables", self._tables)
        if self.has_get_version:
            app.router.add_get(f"{table}/version", self._version)
        app.router.add_head(table, self._version)
        app.router.add_get(f"{table}/metadata", self._metadata)
        app.router.add_post(f"{table}/query", self._query)
        app.router.add_get("/files/{share}/{schema}/{table}/{id}/{name}", self._file)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        if request.path.startswith("/files/"):
            assert "Authorization" not in request.headers, "a file was asked for with the token"
        elif request.headers.get("Authorization") != f"Bearer {self.token}":
            return _error(401, f"who is {request.headers['Authorization'].split()[1]}?")
        elif self.hiccups:
            status, headers = self.hiccups.pop(0)
            return web.Response(status=status, headers=headers)
        try:
            response: web.StreamResponse = await handler(request)
        except _Failure as failure:
            return _error(failure.status, f"{request.path} fails")
        return response

    async def _shares(self, request: web.Request) -> web.Response:
        return self._page(request, [{"name": name, **entry} for name, entry in self.shares.items()])

    async def _schemas(self, request: web.Request) -> web.Response:
        share = request.match_info["share"]
        names = [schema for (of, schema, _) in self.tables if of == share]
        unique = dict.fromkeys([*names, *self.extra_schemas.get(share, ())])
        return self._page(request, [{"name": name, "share": share} for name in unique])

    async def _tables(self, request: web.Request) -> web.Response:
        wanted = request.match_info
        items = [
            {"name": name, "schema": schema, "share": share, **table.entry}
            for (share, schema, name), table in self.tables.items()
            if share == wanted["share"] and schema == wanted.get("schema", schema)
        ]
        return self._page(request, items)

    async def _version(self, request: web.Request) -> web.Response:
        table = self._find(request, "version")
        return web.Response(headers={"Delta-Table-Version": str(table.version)})

    async def _metadata(self, request: web.Request) -> web.Response:
        return self._answer(self._find(request, "metadata"), [])

    async def _query(self, request: web.Request) -> web.Response:
        table = self._find(request, "query")
        assert await request.json() == {}
        where = "/".join(request.match_info[part] for part in ("share", "schema", "table"))
        root = f"http://{request.host}/files/{where}"
        lines: list[Json] = [
            _listed(file, f"{root}/{file['id']}/{file['id']}.parquet?sig=s3cr3t", is_delta=table.is_delta)
            for file in table.files
        ]
        return self._answer(table, lines)

    async def _file(self, request: web.Request) -> web.Response:
        table = self._find(request, "")
        if request.query.get("sig") != "s3cr3t" or request.match_info["id"] not in table.contents:
            return _error(403, "the signature s3cr3t does not match")
        return web.Response(body=table.contents[request.match_info["id"]])

    def _find(self, request: web.Request, call: str) -> FakeTable:
        part = request.match_info
        table = self.tables[part["share"], part["schema"], part["table"]]
        if call in table.errors:
            raise _Failure(table.errors[call])
        if table.is_delta and call in {"metadata", "query"} and not _can_read_delta(request):
            raise _Failure(400)
        return table

    def _answer(self, table: FakeTable, lines: list[Json]) -> web.Response:
        heads = [{"protocol": table.protocol}, {"metaData": table.metadata}]
        if table.is_delta:
            heads = [
                {"protocol": {"deltaProtocol": table.protocol}},
                {"metaData": {"deltaMetadata": table.metadata, "numFiles": len(table.files)}},
            ]
        body = b"".join(json.dumps(line).encode() + b"\n" for line in [*heads, *lines])
        return web.Response(
            body=body + table.tail,
            headers={"Delta-Table-Version": str(table.version), "Content-Type": "application/x-ndjson"},
        )

    def _page(self, request: web.Request, items: list[Json]) -> web.Response:
        start = int(request.query.get("pageToken", "0"))
        page: Json = {"items": items[start : start + self.page_size]}
        if start + self.page_size < len(items):
            page["nextPageToken"] = str(start + self.page_size)
        return web.json_response(page)


def _listed(file: Json, url: str, *, is_delta: bool) -> Json:
    if not is_delta:
        return {"file": {"url": url, **file}}
    said = {key: value for key, value in file.items() if key not in {"id", "expirationTimestamp"}}
    return {"file": {"id": file["id"], "deltaSingleAction": {"add": {"path": url, **said}}}}


def _can_read_delta(request: web.Request) -> bool:
    capabilities = request.headers.get("delta-sharing-capabilities", "")
    return "responseformat=delta,parquet" in capabilities and "deletionvectors" in capabilities


class _Failure(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


def _body(message: str) -> str:
    return json.dumps({"errorCode": "SOME_CODE", "message": message})


def _error(status: int, message: str) -> web.Response:
    return web.Response(status=status, text=_body(message), content_type="application/json")
