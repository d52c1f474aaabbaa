from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unavailable
from tests.cases import each_case
from vendors.http import Reply, Request, check_endpoint, http_date, is_loopback, open_http, retry_after

SECOND = timedelta(seconds=1)
DATE = "Mon, 16 Nov 2026 12:00:00 GMT"


@each_case("body", [b"", b"{", b"[]", b"null", b"\xff", b'"text"', b"[" * 100_000])
def test_body_that_is_no_object_has_no_fields(body):
    assert Reply(status=200, body=body).fields() == {}


def test_nothing_that_may_hold_a_secret_is_shown():
    request = Request(method="GET", url="https://a.example?sig=hush", headers={"a": "hush"}, body=b"hush")
    reply = Reply(status=302, headers={"location": "https://a.example?sig=hush"}, body=b"hush")

    assert "hush" not in repr(request) + repr(reply)


@each_case(("status", "told"), [(429, True), (503, True), (200, False), (403, False), (500, False)])
def test_throttling_is_told_from_other_failures(status, told):
    assert Reply(status=status).is_throttling is told


@each_case(
    ("headers", "wait"),
    [
        ({}, SECOND),
        ({"retry-after": "7"}, 7 * SECOND),
        ({"retry-after": " 7 "}, 7 * SECOND),
        ({"retry-after": "0"}, SECOND),
        ({"retry-after": "-7"}, SECOND),
        ({"retry-after": "60"}, 60 * SECOND),
        ({"retry-after": "61"}, 60 * SECOND),
        ({"retry-after": "99999999999999999999"}, 60 * SECOND),
        ({"retry-after": "9" * 10_000}, 60 * SECOND),
        ({"retry-after": "²"}, SECOND),
        ({"retry-after": "\u0667"}, SECOND),
        ({"retry-after": "7.5"}, SECOND),
        ({"retry-after": "soon"}, SECOND),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:09 GMT", "date": DATE}, 9 * SECOND),
        ({"retry-after": "Mon, 16 Nov 2026 11:59:00 GMT", "date": DATE}, SECOND),
        ({"retry-after": "Tue, 17 Nov 2026 12:00:00 GMT", "date": DATE}, 60 * SECOND),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:09 GMT"}, SECOND),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:09 GMT", "date": "today"}, SECOND),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:09 -0000", "date": DATE}, SECOND),
        ({"retry-after": "Mon, 16 Nov 99999999999999999999 12:00:00 GMT", "date": DATE}, SECOND),
    ],
)
def test_wait_is_what_the_provider_asks_for_within_bounds(headers, wait):
    assert retry_after(headers) == wait
    assert Reply(status=429, headers=headers).retry_after == wait


@given(st.text(max_size=40) | st.from_regex(r"\w{3}, \d{1,3} \w{3} \d{1,30} \d{1,3}:\d\d:\d\d [+-]?\d{1,20}"))
def test_no_header_raises_or_asks_for_more_than_a_minute(text):
    assert SECOND <= retry_after({"retry-after": text, "date": DATE}) <= 60 * SECOND
    assert SECOND <= retry_after({"retry-after": DATE, "date": text}) <= 60 * SECOND


@each_case("text", ["", "yesterday", "Mon, 16 Nov 2026 12:00:00 -0000", "1, 1 Jan 9" + "9" * 30])
def test_what_is_no_date_is_none(text):
    assert http_date(text) is None


@each_case(
    ("host", "told"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost.example", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("", False),
        (None, False),
    ],
)
def test_host_of_this_machine_is_told_from_others(host, told):
    assert is_loopback(host) is told


@each_case(
    ("text", "kept"),
    [
        ("https://a.example/", "https://a.example"),
        ("https://a.example:8443/base", "https://a.example:8443/base"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("http://[::1]:9000/", "http://[::1]:9000"),
        ("http://localhost:9000", "http://localhost:9000"),
    ],
)
def test_endpoint_loses_its_last_slash(text, kept):
    assert check_endpoint(text) == kept


@each_case(
    "text",
    [
        "",
        "a.example",
        "https://",
        "ftp://a.example",
        "http://a.example",
        "http://10.0.0.1",
        "http://127.0.0.1.example",
        "http://localhost.example",
        "https://user:pass@a.example",
        "https://a.example?x=1",
        "https://a.example#x",
        "https://a.example?",
        "https://a.example#",
        "https://@a.example",
        "file:///etc/passwd",
    ],
)
def test_endpoint_that_would_show_secrets_is_refused(text):
    with pytest.raises(ValueError, match="an endpoint"):
        check_endpoint(text)


@asynccontextmanager
async def serving(answer, tmp_path, monkeypatch):
    """Stand for every host, on a unix socket."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    path = str(tmp_path / "s")
    await web.UnixSite(runner, path).start()
    monkeypatch.setattr(aiohttp, "TCPConnector", lambda **_: aiohttp.UnixConnector(path))
    yield
    await runner.cleanup()


@pytest.fixture
async def elsewhere(tmp_path, monkeypatch):
    """A server that sends each request on to another, and what reached it."""
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        if request.path == "/final":
            return web.Response(text="reached")
        status = int(request.path.strip("/"))
        return web.Response(status=status, headers={"Location": "http://other.example/final"})

    async with serving(answer, tmp_path, monkeypatch):
        yield seen


@pytest.fixture
async def served(tmp_path, monkeypatch):
    """A server that answers with the body that it was sent, and what reached it."""
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        body = await request.read() or b"x" * 100_000
        return web.Response(status=403, body=body, headers={"X-Ms-Error-Code": "C", "Set-Cookie": "a=b"})

    async with serving(answer, tmp_path, monkeypatch):
        yield seen


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_redirect_is_an_answer_and_the_bearer_token_goes_nowhere_else(elsewhere, status, method):
    request = Request(
        method=method, url=f"http://api.example/{status}", headers={"Authorization": "Bearer hush"}
    )

    async with open_http() as call:
        reply = await call(request)

    assert reply.status == status
    assert reply.body == b""
    assert [(one.host, one.path) for one in elsewhere] == [("api.example", f"/{status}")]


async def test_address_is_sent_as_it_is(served):
    async with open_http() as call:
        await call(Request(method="GET", url="http://h/c/a%20b/%2541%2B?prefix=a%2Fb&sig=a%2Bb%3D"))

    assert served[0].raw_path == "/c/a%20b/%2541%2B?prefix=a%2Fb&sig=a%2Bb%3D"


async def test_whole_answer_is_read_whatever_its_status(served):
    async with open_http() as call:
        reply = await call(Request(method="GET", url="http://h/c"))

    assert reply.status == 403
    assert reply.headers["x-ms-error-code"] == "C"
    assert reply.body == b"x" * 100_000


async def test_body_and_headers_are_sent(served):
    async with open_http() as call:
        reply = await call(Request(method="PUT", url="http://h/c", headers={"if-none-match": "*"}, body=b"b"))

    assert reply.body == b"b"
    assert served[0].headers["if-none-match"] == "*"


async def test_post_without_a_body_says_that_it_has_none(served):
    async with open_http() as call:
        await call(Request(method="POST", url="http://h/c"))

    assert served[0].headers["content-length"] == "0"


async def test_cookie_is_not_sent_back(served):
    async with open_http() as call:
        for _ in range(2):
            await call(Request(method="GET", url="http://h/c"))

    assert "cookie" not in served[1].headers


async def test_endless_answer_is_cut_off(tmp_path, monkeypatch):
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * (1 << 20))
        except ConnectionError:
            return response

    async with serving(answer, tmp_path, monkeypatch), open_http() as call:
        reply = await call(Request(method="GET", url="http://h/c"))

    assert 16 << 20 <= len(reply.body) < 17 << 20


async def test_no_answer_is_unavailable_and_tells_nothing_of_the_address(tmp_path, monkeypatch, caplog):
    path = str(tmp_path / "none")
    monkeypatch.setattr(aiohttp, "TCPConnector", lambda **_: aiohttp.UnixConnector(path))

    async with open_http() as call:
        with pytest.raises(Unavailable) as raised:
            await call(Request(method="GET", url="http://api.example/private?sig=hush"))

    assert raised.value.__cause__ is None
    assert "api.example" in caplog.text
    for secret in ("private", "hush"):
        assert secret not in raised.value.message + caplog.text


async def test_file_that_holds_no_certificates_is_an_error(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("nothing")

    with pytest.raises(OSError, match="certificate"):
        async with open_http(str(file)):
            pass


async def test_client_that_was_closed_meanwhile_is_unavailable():
    async with open_http() as call:
        pass

    with pytest.raises(Unavailable, match="being replaced"):
        await call(Request(method="GET", url="https://storage.example"))
