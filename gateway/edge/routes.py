"""The routes of the edge, as data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from gateway.edge.errors import Fault, answer, container_answer
from gateway.edge.exchange import Exchange
from gateway.edge.handlers import changes, credentials, queries, query, shares, tables

Handler = Callable[[Exchange], Awaitable[web.StreamResponse]]

# Any character but a slash: names may hold braces, which a plain placeholder would not match.
_NAME: Final = "{%s:[^/]+}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path below the prefix."""

    method: str
    # As in the OpenAPI document and in metrics.
    path: str
    # As in the audit log.
    operation: str
    handler: Handler
    # How it tells what went wrong.
    answer_fault: Callable[[Fault], web.Response] = answer
    # Whether its answers hold keys: the size of a compressed one would tell something of them.
    is_secret: bool = False

    @property
    def pattern(self) -> str:
        """Return the path as the router wants it."""
        path = self.path
        for name in ("share", "schema", "table", "queryId"):
            path = path.replace(f"{{{name}}}", _NAME % name)
        return path


_TABLE: Final = "/shares/{share}/schemas/{schema}/tables/{table}"

# The router tries them in turn: first what clients ask for most.
ROUTES: Final = (
    Route(
        method="POST",
        path=f"{_TABLE}/temporary-table-credentials",
        operation="generateTemporaryTableCredentials",
        handler=credentials.issue,
        is_secret=True,
    ),
    Route(method="POST", path=f"{_TABLE}/query", operation="queryTable", handler=query.query),
    Route(
        method="POST",
        path=f"{_TABLE}/queries/{{queryId}}",
        operation="getQueryInfo",
        handler=queries.follow,
    ),
    Route(method="GET", path=f"{_TABLE}/changes", operation="queryTableChanges", handler=changes.changes),
    Route(method="GET", path=f"{_TABLE}/version", operation="getTableVersion", handler=tables.get_version),
    Route(method="GET", path=f"{_TABLE}/metadata", operation="getTableMetadata", handler=tables.get_metadata),
    Route(
        method="GET",
        path=f"{_TABLE}/aws-credentials",
        operation="getAwsCredentials",
        handler=credentials.issue_for_aws,
        answer_fault=container_answer,
        is_secret=True,
    ),
    Route(method="HEAD", path=_TABLE, operation="getTableVersion", handler=tables.get_version),
    Route(method="GET", path="/shares", operation="listShares", handler=shares.list_shares),
    Route(method="GET", path="/shares/{share}", operation="getShare", handler=shares.get_share),
    Route(method="GET", path="/shares/{share}/schemas", operation="listSchemas", handler=shares.list_schemas),
    Route(
        method="GET",
        path="/shares/{share}/schemas/{schema}/tables",
        operation="listTables",
        handler=shares.list_tables,
    ),
    Route(
        method="GET",
        path="/shares/{share}/all-tables",
        operation="listAllTables",
        handler=shares.list_all_tables,
    ),
)
