"""Answers in the protocol's words: fields that are empty are left out."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import hdrs, web

from gateway.edge import capabilities
from gateway.edge.access_mode import NAMES
from gateway.edge.json import encode_json
from gateway.edge.parameters import FILE_ID_HASH
from gateway.v1.catalog_pb2 import Schema, Share, Table
from gateway.v1.snapshot_pb2 import TableHead

TABLE_VERSION: Final = "Delta-Table-Version"
# What became of the hints: one that is skipped costs time, never a row.
PREDICATE_HINTS: Final = "sluice-predicate-hints"
NDJSON: Final = "application/x-ndjson; charset=utf-8"

_JSON: Final = "application/json; charset=utf-8"
# Answers are made for one recipient and one moment.
_PRIVATE: Final[dict[str, str]] = {hdrs.CACHE_CONTROL: "no-store"}


def json_answer(line: bytes, access_modes: str = "") -> web.Response:
    """Return an answer of one line: some clients read no further."""
    headers = {hdrs.CONTENT_TYPE: _JSON, **_PRIVATE}
    if access_modes:
        headers[capabilities.HEADER] = access_modes
    return web.Response(body=line, headers=headers)


def pending_answer(query_id: str, access_modes: str) -> web.Response:
    """Return the answer to a query whose result is being made: one line, and a version that means nothing.

    A client that reads the version before the line could not go on without one.
    """
    line = encode_json({"queryStatus": {"queryId": query_id, "status": "pending"}}) + b"\n"
    headers = {
        hdrs.CONTENT_TYPE: NDJSON,
        TABLE_VERSION: "0",
        capabilities.HEADER: capabilities.render_pending(access_modes),
        **_PRIVATE,
    }
    return web.Response(body=line, headers=headers)


def version_answer(version: int) -> web.Response:
    return web.Response(headers={TABLE_VERSION: str(version), **_PRIVATE})


def table_headers(
    head: TableHead,
    access_modes: str,
    *,
    end_stream_action: bool = False,
    file_id_hash: str = "",
    has_hints: bool = False,
) -> dict[str, str]:
    """Return the headers of every answer that begins with a table's head."""
    headers = {
        hdrs.CONTENT_TYPE: NDJSON,
        TABLE_VERSION: str(head.version),
        capabilities.HEADER: capabilities.render(
            head.response_format, access_modes, end_stream_action=end_stream_action
        ),
        **_PRIVATE,
    }
    if file_id_hash:
        headers[FILE_ID_HASH] = file_id_hash
    if has_hints:
        headers[PREDICATE_HINTS] = f"used={head.hints.used}, skipped={head.hints.skipped}"
    return headers


def share_json(share: Share) -> dict[str, Any]:
    return _present(
        name=share.name,
        id=share.id,
        displayName=share.display_name,
        comment=share.comment,
        properties=dict(share.properties),
    )


def schema_json(schema: Schema) -> dict[str, Any]:
    return _present(name=schema.name, share=schema.share)


def table_json(table: Table) -> dict[str, Any]:
    return _present(
        name=table.name,
        schema=table.schema,
        share=table.share,
        shareId=table.share_id,
        id=table.id,
        location=table.location,
        auxiliaryLocations=list(table.auxiliary_locations),
        accessModes=[NAMES[mode] for mode in table.access_modes],
    )


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
