"""A request as an edge sees it: its path as it was sent, and nothing that a client made up about itself."""

from __future__ import annotations

import re
import socket

import pytest

from tests.components import ENVOY
from tests.integration.api_gateway.exchange import exchange
from tests.proxies.front import PREFIX, Front
from tests.proxies.recording_edge import Asked, RecordingEdge
from tests.waiting import eventually

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
MADE_UP = {
    "X-Forwarded-For": "6.6.6.6",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "6",
    "X-Real-IP": "6.6.6.6",
    "Forwarded": "for=6.6.6.6",
}
STEERING = {
    "X-Envoy-External-Address": "6.6.6.6",
    "X-Envoy-Upstream-Rq-Timeout-Ms": "1",
    "X-Envoy-Max-Retries": "9",
    "X-Envoy-Retry-On": "5xx",
}
_REQUEST_ID = re.compile(r"[0-9a-f-]{32,36}")


def only(recorded: list[RecordingEdge]) -> Asked:
    (asked,) = [asked for edge in recorded for asked in edge.asked]
    return asked


@pytest.mark.parametrize(
    "path",
    [
        f"{PREFIX}/shares/a%2Fb/schemas",
        f"{PREFIX}/shares/a%2fb/schemas?pageToken=x%2Fy%3D",
        f"{PREFIX}/shares/100%25/schemas",
        f"{PREFIX}/shares/%C3%A9t%C3%A9/schemas/a%20b/tables",
        f"{PREFIX}/files/lake/day=1%252F2/p%2Bq.parquet?sp=r&sig=a_-",
        f"{PREFIX}/shares//schemas",
        f"{PREFIX}/shares/a%5Cb/schemas",
        # Dots that are no segment by themselves.
        f"{PREFIX}/shares/a..b/schemas/.hidden/tables/...",
        f"{PREFIX}/shares/a%2F..b/schemas/c.%2Fd/tables/e..%2ff",
        f"{PREFIX}/files/lake/.part/..x/.../p.parquet?of=/../x",
    ],
)
def test_a_path_arrives_as_it_was_sent(recording_front: Front, recorded, path: str) -> None:
    assert recording_front.ask(path).status == 200
    assert only(recorded).target == path


@pytest.mark.parametrize("path", ["/x/../shares", "/./shares", "/x/%2E%2e/shares", "/x/.%2e/shares?a=b"])
def test_no_dot_segment_is_left_to_the_edge_to_resolve(recording_front: Front, recorded, path: str) -> None:
    # Envoy resolves them, nginx refuses them.
    assert recording_front.ask(PREFIX + path).status in {200, 400}
    targets = {asked.target.partition("?")[0] for edge in recorded for asked in edge.asked}
    assert targets <= {f"{PREFIX}/shares"}


@pytest.mark.parametrize(
    "path",
    [
        "/shares/..%2Ffiles/x",
        "/shares/..%2ffiles/x",
        "/shares/%2e%2E%2Ffiles/x",
        "/shares/a%2F../files/x",
        "/shares/a%2F..%2Ffiles/x",
        "/shares/a%2F..",
        "/shares/a%2F.%2Fb",
        "/files/..%2Fshares",
        "/docs#/../shares",
        "/shares/..#",
    ],
)
def test_a_path_that_somebody_could_take_for_another_is_refused(
    recording_front: Front, recorded, path: str
) -> None:
    target = f"{PREFIX}{path} HTTP/1.1"
    answer = exchange(recording_front, f"GET {target}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b" ")[1] == b"400"
    assert not [edge for edge in recorded if edge.asked]


def test_the_address_is_the_one_that_the_client_called_from_whatever_it_says(
    recording_front: Front, recorded
) -> None:
    recording_front.ask(f"{PREFIX}/shares", headers=MADE_UP, source="127.0.0.2")
    asked = only(recorded)
    assert asked.all("x-forwarded-for") == ["127.0.0.2"]
    assert asked.all("x-forwarded-proto") == ["https"]
    assert not [value for _, value in asked.headers if "6.6.6.6" in value or "evil" in value]


@pytest.mark.parametrize("kind", [pytest.param("envoy", marks=pytest.mark.component(ENVOY))], indirect=True)
def test_nobody_steers_envoy_by_its_headers(recording_front: Front, recorded) -> None:
    answer = recording_front.ask(f"{PREFIX}/shares", headers=STEERING, source="127.0.0.2")
    assert answer.status == 200
    asked = only(recorded)
    assert asked.all("x-envoy-external-address") == ["127.0.0.2"]
    assert {name for name, _ in asked.headers if name.startswith("x-envoy")} == {"x-envoy-external-address"}


def test_a_request_gets_an_id_that_the_client_does_not_choose(recording_front: Front, recorded) -> None:
    answer = recording_front.ask(f"{PREFIX}/shares", headers={"X-Request-Id": "mine"})
    (given,) = only(recorded).all("x-request-id")
    assert _REQUEST_ID.fullmatch(given)
    assert answer.headers["x-request-id"] == given
    eventually(lambda: given in {entry["request_id"] for entry in recording_front.access_log()})


def test_the_trace_and_the_token_are_passed_on(recording_front: Front, recorded) -> None:
    sent = {
        "traceparent": TRACE,
        "tracestate": "a=b",
        "Authorization": "Bearer t",
        "delta-sharing-capabilities": "x=y",
    }
    recording_front.ask(f"{PREFIX}/shares", headers=sent)
    asked = only(recorded)
    assert {name: asked.all(name.lower()) for name in sent} == {name: [value] for name, value in sent.items()}


def test_a_header_that_some_take_for_another_does_not_arrive(recording_front: Front, recorded) -> None:
    answer = recording_front.ask(f"{PREFIX}/shares", headers={"X_Forwarded_For": "6.6.6.6"})
    # Envoy refuses the request, nginx drops the header.
    assert answer.status in {200, 400}
    assert not [1 for edge in recorded for asked in edge.asked if asked.all("x_forwarded_for")]


def test_a_body_arrives_whole(recording_front: Front, recorded) -> None:
    body = b"x" * 1_000_000
    assert recording_front.ask(f"{PREFIX}/shares/s/query", method="POST", body=body).status == 200
    assert only(recorded).body == body


def test_both_edges_get_their_share(recording_front: Front, recorded) -> None:
    for _ in range(40):
        recording_front.ask(f"{PREFIX}/shares")
    assert all(len(edge.asked) > 5 for edge in recorded)


@pytest.mark.parametrize(("offered", "spoken"), [(["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1")])
def test_recipients_are_offered_http_2_over_tls_1_3(
    recording_front: Front, offered: list[str], spoken: str
) -> None:
    context = recording_front.tls()
    context.set_alpn_protocols(offered)
    address = ("127.0.0.1", recording_front.ports.recipients)
    with (
        socket.create_connection(address, 60) as sock,
        context.wrap_socket(sock, server_hostname="127.0.0.1") as tls,
    ):
        assert (tls.selected_alpn_protocol(), tls.version()) == (spoken, "TLSv1.3")


def test_answers_tell_browsers_to_stay_with_tls_and_nothing_of_what_is_behind(
    recording_front: Front, recorded
) -> None:
    answer = recording_front.ask(f"{PREFIX}/shares")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("x-envoy")]
    assert not re.search(r"\d", answer.headers.get("server", ""))
