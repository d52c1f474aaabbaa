"""Errors that belong to no endpoint: unknown paths, wrong methods, bad HTTP."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.cases import each_case
from tests.contract.http.client import Client, fetch
from tests.contract.http.facts import Gateway


# Of each kind one; tests/unit/edge/test_app.py has more.
@each_case("path", ["", "/shares/", "//shares"])
def test_an_unknown_path_is_404(client: Client, path: str) -> None:
    assert client.get(path).error() == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_path_outside_of_the_prefix_is_404(gateway: Gateway) -> None:
    parts = urlsplit(gateway.url)
    for path in ("/", "/shares", "/admin", "/metrics", "/healthz"):
        assert fetch("GET", f"{parts.scheme}://{parts.netloc}{path}", {}).status == 404


@each_case(
    ("method", "path", "allowed"),
    [
        ("OPTIONS", "/shares", "GET"),
        ("GET", "/shares/x/schemas/y/tables/z", "HEAD"),
        ("GET", "/shares/x/schemas/y/tables/z/query", "POST"),
    ],
)
def test_a_wrong_method_is_405_with_allow(client: Client, method: str, path: str, allowed: str) -> None:
    answer = client.request(method, path)
    assert answer.error() == (405, "UNSUPPORTED_OPERATION")
    assert answer.headers["Allow"] == allowed


@each_case(
    ("data", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nbroken\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_bad_http_is_answered_in_json_without_a_banner(client: Client, data: bytes, status: bytes) -> None:
    answer = client.raw(data)
    assert answer.split()[1] == status
    assert b"application/json" in answer
    assert b'"errorCode"' in answer
    assert b"aiohttp" not in answer
    assert b"Python" not in answer
