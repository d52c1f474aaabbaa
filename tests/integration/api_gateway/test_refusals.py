"""What never reaches an edge: too much, too large, elsewhere, ambiguous; and what is said of it."""

from __future__ import annotations

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.http import Answer
from tests.http import request as ask
from tests.integration.api_gateway.conftest import new_ports
from tests.integration.api_gateway.exchange import exchange
from tests.integration.api_gateway.test_behind_a_load_balancer import CHANGES as BEHIND_A_LOAD_BALANCER
from tests.integration.api_gateway.test_behind_a_load_balancer import LOAD_BALANCER
from tests.proxies.front import PREFIX, Front
from tests.waiting import eventually

TOKEN = "slc_never-to-be-written-down"
SIGNATURE = "the-right-to-read"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
# The rates that are shipped, and so small ones that a test can exceed them.
_BUCKET = (
    "{key: %s}]\n" + " " * 26 + "token_bucket: {max_tokens: %d, tokens_per_fill: %d, fill_interval: %ds}"
)
SMALL_RATES = {
    "envoy": {
        _BUCKET % ("masked_remote_address", 400, 200, 1): _BUCKET % ("masked_remote_address", 6, 1, 600),
        _BUCKET % ("token", 400, 200, 1): _BUCKET % ("token", 3, 1, 600),
    },
    "nginx": {
        "zone=address:16m rate=200r/s": "zone=address:16m rate=1r/m",
        "zone=token:32m rate=200r/s": "zone=token:32m rate=1r/m",
        "zone=address burst=400": "zone=address burst=5",
        "zone=token burst=400": "zone=token burst=2",
    },
}
EVERYBODYS_RATE = {
    "envoy": {
        "token_bucket: {max_tokens: 4000, tokens_per_fill: 2000, fill_interval: 1s}": (
            "token_bucket: {max_tokens: 3, tokens_per_fill: 1, fill_interval: 600s}"
        )
    },
    "nginx": {"rate=2000r/s": "rate=1r/m", "zone=everybody burst=4000": "zone=everybody burst=2"},
}


def code_of(answer: Answer) -> tuple[int, str]:
    """Return the status and the protocol's code, which every refusal has."""
    assert answer.headers["content-type"].startswith("application/json")
    assert set(answer.json) == {"errorCode", "message"}
    return answer.status, answer.json["errorCode"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics",
        "/healthz",
        "/readyz",
        "/stats",
        "/delta-sharingmetrics",
        "/gateway.v1.Catalog/Resolve",
        "/grpc.health.v1.Health/Check",
        "/_verify",
    ],
)
def test_only_the_protocol_is_reached(recording_front: Front, recorded, path: str) -> None:
    assert code_of(recording_front.ask(path)) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert not [edge for edge in recorded if edge.asked]


@pytest.mark.parametrize(
    "path", ["/../metrics", "/%2e%2e/metrics", "/shares/../../metrics", "/shares/%2E./../metrics"]
)
def test_no_path_leads_out_of_the_protocol(recording_front: Front, recorded, path: str) -> None:
    # Envoy resolves it and finds nothing there, nginx refuses it.
    assert code_of(recording_front.ask(PREFIX + path))[0] in {400, 404}
    assert not [edge for edge in recorded if edge.asked]


def test_a_body_that_is_too_large_is_refused(recording_front: Front, recorded) -> None:
    answer = recording_front.ask(f"{PREFIX}/shares/s/query", method="POST", body=b"x" * (1024 * 1024 + 1))
    assert code_of(answer) == (413, "MALFORMED_REQUEST")
    assert not [edge for edge in recorded if edge.asked]


@pytest.mark.parametrize("headers", [{"X-Long": "x" * 40_000}, {f"X-{n}": "x" * 500 for n in range(100)}])
def test_headers_that_are_too_large_are_refused(recording_front: Front, recorded, headers) -> None:
    assert code_of(recording_front.ask(f"{PREFIX}/shares", headers=headers)) == (431, "MALFORMED_REQUEST")
    assert not [edge for edge in recorded if edge.asked]


def test_a_request_whose_end_is_in_doubt_is_refused_and_its_connection_closed(
    recording_front: Front, recorded
) -> None:
    heads = (
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: +4\r\n",
    )
    # At once, as Envoy takes a second to close a connection.
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(lambda head: smuggle(recording_front, head), heads))
    # 501 for a coding that is not known.
    assert {answer.split(b" ")[1] for answer in answers} <= {b"400", b"501"}
    assert [answer.count(b"HTTP/1.1") for answer in answers] == [1] * len(heads)
    assert not [edge for edge in recorded if edge.asked]


def smuggle(front: Front, head: str) -> bytes:
    """Send a request with another one behind it, or in its body, and return all that is answered."""
    another = "0\r\n\r\nGET /delta-sharing/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    text = f"POST {PREFIX}/shares/s/query HTTP/1.1\r\nHost: x\r\n{head}\r\n{another}"
    return exchange(front, text.encode())


def test_nobody_is_served_without_tls_or_with_an_old_one(recording_front: Front, recorded) -> None:
    address = ("127.0.0.1", recording_front.ports.recipients)
    with socket.create_connection(address, 30) as plain:
        plain.sendall(f"GET {PREFIX}/shares HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with suppress(ConnectionResetError):
            assert b"200 OK" not in plain.recv(65536)
    context = recording_front.tls()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(address, 30) as sock, pytest.raises(ssl.SSLError):
        context.wrap_socket(sock, server_hostname="localhost")
    assert not [edge for edge in recorded if edge.asked]


def test_its_health_is_told_elsewhere(recording_front: Front, recorded) -> None:
    base = f"http://127.0.0.1:{recording_front.ports.health}"
    # Envoy may still have to find out that the edges are ready again.
    eventually(lambda: ask(f"{base}/healthz").status == 200)
    assert ask(f"{base}{PREFIX}/shares").status == 404


@pytest.fixture(scope="module")
def slow_front(kind, start, two_recording_edges, authority, tmp_path_factory):
    addresses = [edge.address for edge in two_recording_edges]
    directory = tmp_path_factory.mktemp("slow")
    with start(directory, new_ports(), addresses, authority, changes=SMALL_RATES[kind]) as front:
        yield front


def test_a_client_over_its_rate_is_told_to_wait_and_others_are_not(slow_front: Front, recorded) -> None:
    def ask_as(source: str, token: str) -> Answer:
        return slow_front.ask(f"{PREFIX}/shares", headers={"Authorization": f"Bearer {token}"}, source=source)

    # By its token, wherever it calls from; then by its address, whatever token it sends.
    assert [ask_as(f"127.0.0.{n}", TOKEN).status for n in (3, 4, 5, 6)] == [200, 200, 200, 429]
    assert [ask_as("127.0.0.7", f"token-{n}").status for n in range(8)] == [200] * 6 + [429] * 2
    refused = ask_as("127.0.0.3", TOKEN)
    assert code_of(refused) == (429, "RESOURCE_EXHAUSTED")
    assert int(refused.headers["retry-after"]) >= 1
    assert ask_as("127.0.0.8", "another").status == 200


@pytest.mark.parametrize(
    "spelling",
    ["bearer {}", "BEARER {}", "bEaReR {}", "Bearer  {}", f"Bearer{' ' * 9000}{{}}", "Bearer {} "],
    ids=["lower", "upper", "mixed", "two spaces", "many spaces", "a space behind it"],
)
def test_a_token_has_one_rate_however_it_is_spelled(slow_front: Front, recorded, spelling: str) -> None:
    token = f"one-of-{abs(hash(spelling))}"
    spellings = [f"Bearer {token}"] * 3 + [spelling.format(token)]
    asked = [
        slow_front.ask(f"{PREFIX}/shares", headers={"Authorization": text}, source=f"127.0.1.{number}")
        for number, text in enumerate(spellings, start=token_number(spelling))
    ]
    assert [answer.status for answer in asked] == [200, 200, 200, 429]


def token_number(spelling: str) -> int:
    """Return a number that lets each spelling come from addresses of its own."""
    return 10 + sum(spelling.encode()) % 200


def test_a_network_of_ipv6_is_one_client(kind, start, two_recording_edges, authority, tmp_path) -> None:
    def ask_as(front: Front, told: str) -> int:
        return front.ask(f"{PREFIX}/shares", headers={"X-Forwarded-For": told}, source=LOAD_BALANCER).status

    addresses = [edge.address for edge in two_recording_edges]
    changes = SMALL_RATES[kind] | BEHIND_A_LOAD_BALANCER[kind]
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=changes) as front:
        home = [ask_as(front, f"2001:db8:0:1::{number:x}") for number in range(4)]
        home += [ask_as(front, f"2001:db8:0:1:{number:x}00:0:a00:{number:x}") for number in range(1, 5)]
        assert home == [200] * 6 + [429] * 2
        assert ask_as(front, "2001:db8:0:2::1") == 200
        # Of IPv4, each by itself.
        assert [ask_as(front, f"198.51.100.{number}") for number in range(8)] == [200] * 8


def test_all_clients_together_have_a_rate_too(kind, start, two_recording_edges, authority, tmp_path) -> None:
    addresses = [edge.address for edge in two_recording_edges]
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=EVERYBODYS_RATE[kind]) as front:
        answers = [front.ask(f"{PREFIX}/shares", source=f"127.0.0.{n}").status for n in range(2, 7)]
    assert answers == [200, 200, 200, 429, 429]


@pytest.mark.parametrize("asked", ["recording_front", "slow_front"])
def test_what_is_secret_is_written_nowhere(request, kind, recorded, asked: str) -> None:
    front: Front = request.getfixturevalue(asked)
    signed = f"{PREFIX}/files/lake/x?sp=r&sig={SIGNATURE}"
    for path in (signed, f"{PREFIX}/shares?sig={SIGNATURE}"):
        front.ask(path, headers=BEARER)
        front.ask(path, headers={**BEARER, "X-Long": TOKEN * 2000})
    for edge in recorded:
        edge.fault = "before the answer"
    front.ask(signed, headers=BEARER)
    front.ask(f"/the-last?sig={SIGNATURE}", headers=BEARER)
    eventually(lambda: "/the-last" in {entry["path"] for entry in front.access_log()})
    written = front.server.log() + (admin_pages(front) if kind == "envoy" else "")
    assert TOKEN not in written
    assert SIGNATURE not in written


def admin_pages(front: Front) -> str:
    """Return what Envoy tells those who run it."""
    admin = f"http://127.0.0.1:{front.ports.admin}"
    return "".join(ask(admin + page).body.decode() for page in ("/stats", "/config_dump", "/clusters"))
