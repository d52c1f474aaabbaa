"""Two real edges behind each API gateway: who asked, what is lost when one goes, the official client."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest

from tests.components import ALL_IN_ONE, CLIENT
from tests.e2e.official_client import OfficialClient
from tests.integration.api_gateway.conftest import new_ports
from tests.integration.api_gateway.edges import Edges
from tests.integration.conftest import TOKEN
from tests.proxies.front import PREFIX, Front, Ports
from tests.proxies.load import Question, load
from tests.stores.process import listens
from tests.waiting import eventually

pytestmark = pytest.mark.component(ALL_IN_ONE)

SMALL = [
    Question("GET", f"{PREFIX}/shares", lambda body: json.loads(body)["items"][0]["name"] == "sample"),
    Question(
        "POST",
        f"{PREFIX}/shares/sample/schemas/sales/tables/orders/query",
        lambda body: body.count(b'{"file":') > 0 and body.endswith(b"\n"),
    ),
]
LARGE = [
    Question(
        "POST",
        f"{PREFIX}/shares/sample/schemas/big/tables/ten_thousand_files/query",
        lambda body: body.count(b'{"file":') == 10_000,
    ),
]


@pytest.fixture(scope="package")
def ports() -> Ports:
    return new_ports()


@pytest.fixture(scope="package")
def edges(settings, ports, tmp_path_factory) -> Iterator[Edges]:
    """Two: only the first one believes what its proxy says of its clients."""
    common = settings | {
        "publicUrl": f"https://127.0.0.1:{ports.recipients}{PREFIX}",
        "keys": {"current": {"secret": secrets.token_urlsafe(32)}},
    }
    trusting = common | {"http": {"trustedProxies": ["127.0.0.1"]}}
    edges = Edges(tmp_path_factory.mktemp("edges"), [trusting, common])
    try:
        with ThreadPoolExecutor() as threads:
            list(threads.map(edges.start, (0, 1)))
        yield edges
    finally:
        edges.close()


@pytest.fixture(scope="module")
def front(start, edges: Edges, ports, authority, tmp_path_factory) -> Iterator[Front]:
    # The edges' publicUrl is of one port, so the two fronts take turns there.
    eventually(lambda: not listens(ports.recipients))
    with start(tmp_path_factory.mktemp("front"), ports, edges.addresses, authority) as started:
        yield started


def uses_both(front: Front, edges: Edges) -> bool:
    """Say whether both edges are asked, by what was written of the last requests."""
    assert front.ask(f"{PREFIX}/shares", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    used = {entry["edge"] for entry in front.access_log()[-8:]}
    return used == {f"127.0.0.1:{address.port}" for address in edges.addresses}


def test_the_audit_log_has_the_clients_address_where_the_proxy_is_trusted_and_never_a_made_up_one(
    front: Front, edges: Edges
) -> None:
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "X-Forwarded-For": "6.6.6.6, 127.0.0.1",
        "User-Agent": front.url,
    }

    def remotes(number: int) -> set[str]:
        return {event["remote"] for event in edges.events(number) if event["user_agent"] == front.url}

    def are_both_asked() -> bool:
        assert front.ask(f"{PREFIX}/shares", headers=headers, source="127.0.0.2").status == 200
        return bool(remotes(0) and remotes(1))

    eventually(are_both_asked)
    assert (remotes(0), remotes(1)) == ({"127.0.0.2"}, {"127.0.0.1"})


def test_one_id_leads_from_the_answer_to_both_logs(front: Front, edges: Edges) -> None:
    answer = front.ask(
        f"{PREFIX}/shares", headers={"Authorization": f"Bearer {TOKEN}", "X-Request-Id": "mine"}
    )
    given = answer.headers["x-request-id"]
    eventually(lambda: given in {e["request_id"] for number in (0, 1) for e in edges.events(number)})
    eventually(lambda: given in {entry["request_id"] for entry in front.access_log()})


@pytest.mark.component(CLIENT)
def test_the_official_client_reads_tables_and_files_and_no_secret_of_it_is_logged(
    front: Front, edges: Edges, tmp_path
) -> None:
    profile = tmp_path / "reader.share"
    profile.write_text(
        json.dumps({"shareCredentialsVersion": 1, "endpoint": front.base_url, "bearerToken": TOKEN})
    )
    ca = str(front.authority.ca)
    with patch.dict(os.environ, {"REQUESTS_CA_BUNDLE": ca, "SSL_CERT_FILE": ca}):
        client = OfficialClient()
    try:
        assert "sample.sales.orders" in client.call("list_all_tables", profile)
        # Names in many scripts: the files' paths are escaped, and their URLs signed.
        rows = client.call("load_as_pandas", profile, "sample.geo.cities")["rows"]
    finally:
        client.close()
    assert rows
    eventually(lambda: any("/files/" in entry["path"] for entry in front.access_log()))
    assert {entry["status"] for entry in front.access_log()} <= {200, 206}
    assert TOKEN not in front.server.log()
    assert "sig=" not in front.server.log()


def test_an_edge_that_is_killed_takes_no_request_with_it_that_had_no_answer_yet(
    front: Front, edges: Edges
) -> None:
    # An answer that has begun is broken off, as it must be; these are whole at once.
    with load(front, TOKEN, [SMALL, SMALL, SMALL]) as clients:
        clients.go_on(20)
        edges.kill(0)
        clients.go_on(60)
        edges.start(0)
        clients.go_on(20)
    eventually(lambda: uses_both(front, edges))
    assert not clients.failed


def test_an_edge_that_is_restarted_fails_no_request_and_finishes_its_streams(
    front: Front, edges: Edges
) -> None:
    with load(front, TOKEN, [SMALL, SMALL, LARGE, LARGE]) as clients:
        clients.go_on(20)
        assert edges.stop(1) == 0
        clients.go_on(20)
        edges.start(1)
        clients.go_on(20)
    eventually(lambda: uses_both(front, edges))
    assert clients.answered[LARGE[0].path]
    assert not clients.failed
