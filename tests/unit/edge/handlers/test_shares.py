from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.v1.catalog_pb2 import (
    GetShareRequest,
    ListAllTablesRequest,
    ListSchemasRequest,
    ListSharesRequest,
    ListTablesRequest,
)
from tests.unit.edge.conftest import Edge


def items(body: bytes) -> list[Any]:
    found: list[Any] = json.loads(body)["items"]
    return found


async def test_only_granted_shares_are_listed(edge: Edge) -> None:
    reply = await edge.get("/shares")
    assert json.loads(reply.body) == {"items": [{"name": "Sales", "id": "id-Sales"}]}


async def test_a_share_is_wrapped(edge: Edge) -> None:
    assert json.loads((await edge.get("/shares/sales")).body) == {
        "share": {"name": "Sales", "id": "id-Sales"}
    }


async def test_schemas_name_their_share(edge: Edge) -> None:
    reply = await edge.get("/shares/Sales/schemas")
    assert items(reply.body) == [{"name": "eu", "share": "Sales"}, {"name": "us", "share": "Sales"}]


async def test_tables_of_a_schema(edge: Edge) -> None:
    reply = await edge.get("/shares/Sales/schemas/us/tables")
    assert items(reply.body) == [
        {
            "name": "history",
            "schema": "us",
            "share": "Sales",
            "shareId": "id-Sales",
            "id": "id-history",
            "location": "s3://bucket/history",
            "accessModes": ["url"],
        }
    ]


async def test_tables_of_all_schemas(edge: Edge) -> None:
    reply = await edge.get("/shares/Sales/all-tables")
    assert [table["name"] for table in items(reply.body)] == ["both", "dirs", "empty", "orders", "history"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/shares", ListSharesRequest),
        ("/shares/Sales/schemas", ListSchemasRequest),
        ("/shares/Sales/schemas/eu/tables", ListTablesRequest),
        ("/shares/Sales/all-tables", ListAllTablesRequest),
    ],
)
async def test_paging_is_passed_on_and_zero_is_not_the_same_as_nothing(
    edge: Edge, path: str, message: type[Any]
) -> None:
    await edge.get(path)
    first = await edge.get(f"{path}?maxResults=0")
    token = json.loads(first.body)["nextPageToken"]
    assert items(first.body) == []
    await edge.get(f"{path}?maxResults=7&pageToken={token}&other=1")
    bare, zero, seven = edge.services.catalog.requests
    assert isinstance(bare, message)
    assert not bare.HasField("max_results")
    assert zero.HasField("max_results")
    assert (seven.max_results, seven.page_token) == (7, token)


@pytest.mark.parametrize("path", ["/shares", "/shares/Sales/schemas", "/shares/Sales/all-tables"])
async def test_a_bad_parameter_is_400_before_anybody_is_asked(edge: Edge, path: str) -> None:
    reply = await edge.get(f"{path}?maxResults=-1")
    assert reply.status == 400
    assert "maxResults" in json.loads(reply.body)["message"]
    assert edge.services.catalog.requests == []


@pytest.mark.parametrize(
    ("encoded", "name"),
    [
        ("a+b", "a+b"),
        ("a%2Bb", "a+b"),
        ("a%20b", "a b"),
        ("caf%C3%A9", "café"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("%7Bx%7D", "{x}"),
        ("..", ".."),
        ("a%00b", "a\x00b"),
    ],
)
async def test_names_arrive_percent_decoded_and_the_catalog_decides(
    edge: Edge, encoded: str, name: str
) -> None:
    reply = await edge.get(f"/shares/{encoded}")
    assert reply.status == 404
    (request,) = edge.services.catalog.requests
    assert isinstance(request, GetShareRequest)
    assert request.share == name


async def test_bytes_that_are_no_text_name_nothing(edge: Edge) -> None:
    assert (await edge.get("/shares/%ff%fe")).status == 404
