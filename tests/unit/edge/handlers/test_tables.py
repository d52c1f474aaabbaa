from __future__ import annotations

import json

from gateway.errors import Unauthenticated
from gateway.v1.catalog_pb2 import AUDIENCE_SNAPSHOT
from gateway.v1.snapshot_pb2 import RESPONSE_FORMAT_DELTA, RESPONSE_FORMAT_PARQUET
from tests.unit.edge.conftest import Edge

ORDERS = "/shares/Sales/schemas/eu/tables/orders"
HISTORY = "/shares/Sales/schemas/us/tables/history"


async def test_a_version_is_in_the_header_and_the_body_is_empty(edge: Edge) -> None:
    for reply in (await edge.get(f"{ORDERS}/version"), await edge.head(ORDERS)):
        assert reply.status == 200
        assert reply.headers["Delta-Table-Version"] == "7"
        assert reply.body == b""
    assert [event.version for event in edge.audit.noted] == [7, 7]
    assert [event.operation for event in edge.audit.noted] == ["getTableVersion"] * 2


async def test_only_the_snapshot_service_is_granted_anything(edge: Edge) -> None:
    await edge.get(f"{ORDERS}/version")
    await edge.get(f"{ORDERS}/metadata")
    assert [list(request.audiences) for request in edge.services.catalog.requests] == [
        [AUDIENCE_SNAPSHOT]
    ] * 2


async def test_a_starting_timestamp_is_passed_on(edge: Edge) -> None:
    reply = await edge.get(f"{HISTORY}/version?startingTimestamp=2022-01-01T00%3A00%3A00Z")
    assert reply.status == 200
    assert edge.services.snapshot.requests[0].starting_timestamp == "2022-01-01T00:00:00Z"


async def test_metadata_is_two_lines_whatever_the_client_can_take(edge: Edge) -> None:
    reply = await edge.get(f"{ORDERS}/metadata", delta_sharing_capabilities="includeEndStreamAction=true")
    assert [list(json.loads(line)) for line in reply.lines] == [["protocol"], ["metaData"]]
    assert reply.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert reply.headers["Delta-Table-Version"] == "7"
    assert reply.headers["delta-sharing-capabilities"] == "responseformat=parquet"


async def test_capabilities_are_passed_on(edge: Edge) -> None:
    header = "responseformat=delta,PARQUET;readerfeatures=deletionVectors"
    await edge.get(f"{ORDERS}/metadata", delta_sharing_capabilities=header)
    capabilities = edge.services.snapshot.requests[0].capabilities
    assert list(capabilities.response_formats) == [RESPONSE_FORMAT_DELTA, RESPONSE_FORMAT_PARQUET]
    assert list(capabilities.reader_features) == ["deletionvectors"]


async def test_metadata_of_a_version_or_a_time(edge: Edge) -> None:
    by_version = await edge.get(f"{HISTORY}/metadata?version=3")
    await edge.get(f"{HISTORY}/metadata?timestamp=2022-01-01T00:00:00Z")
    assert by_version.headers["Delta-Table-Version"] == "3"
    first, second = edge.services.snapshot.requests
    assert (first.at.version, second.at.timestamp) == (3, "2022-01-01T00:00:00Z")


async def test_metadata_of_a_version_and_a_time_is_400(edge: Edge) -> None:
    reply = await edge.get(f"{HISTORY}/metadata?version=3&timestamp=2022-01-01T00:00:00Z")
    assert reply.status == 400
    assert "Please only provide one of" in json.loads(reply.body)["message"]


async def test_a_refused_grant_is_not_the_clients_401(edge: Edge) -> None:
    edge.services.snapshot.error = Unauthenticated("the grant has expired")
    for path in (f"{ORDERS}/version", f"{ORDERS}/metadata"):
        reply = await edge.get(path)
        assert reply.status == 503
        assert "WWW-Authenticate" not in reply.headers


async def test_a_table_that_is_not_granted_is_as_one_that_does_not_exist(edge: Edge) -> None:
    hidden = await edge.get("/shares/hidden/schemas/d/tables/t/version")
    missing = await edge.get("/shares/nowhere/schemas/d/tables/t/version")
    assert hidden.status == missing.status == 404
    assert hidden.body.replace(b"hidden", b"nowhere") == missing.body
