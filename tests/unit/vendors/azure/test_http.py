from __future__ import annotations

import aiohttp
import pytest
from aiohttp import web

from gateway.errors import Unavailable
from vendors.azure.http import AioHttp, Request, open_http


@pytest.fixture
async def served(tmp_path):
    """A server on a unix socket, and what reaches it."""
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        if request.path == "/moved":
            raise web.HTTPFound("/elsewhere")
        return web.Response(
            status=403, body=await request.read() or b"x" * 100_000, headers={"X-Ms-Error-Code": "C"}
        )

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    path = str(tmp_path / "s")
    await web.UnixSite(runner, path).start()
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session:
        yield AioHttp(session), seen
    await runner.cleanup()


async def test_address_is_sent_as_it_is(served):
    http, seen = served
    await http.send(Request(method="GET", url="http://h/c/a%20b/%2541%2B?prefix=a%2Fb&sig=a%2Bb%3D"))

    assert seen[0].raw_path == "/c/a%20b/%2541%2B?prefix=a%2Fb&sig=a%2Bb%3D"
    assert seen[0].headers["x-ms-version"] == "2023-11-03"


async def test_whole_answer_is_read_whatever_its_status(served):
    answer = await served[0].send(Request(method="GET", url="http://h/c"))

    assert answer.status == 403
    assert answer.headers["x-ms-error-code"] == "C"
    assert answer.body == b"x" * 100_000


async def test_body_and_headers_are_sent(served):
    http, seen = served
    request = Request(method="PUT", url="http://h/c", headers={"if-none-match": "*"}, body=b"b")

    assert (await http.send(request)).body == b"b"
    assert seen[0].headers["if-none-match"] == "*"


async def test_redirect_is_not_followed(served):
    http, seen = served
    answer = await http.send(
        Request(method="GET", url="http://h/moved", headers={"authorization": "Bearer t"})
    )

    assert answer.status == 302
    assert len(seen) == 1


async def test_no_answer_is_unavailable_and_tells_nothing_of_the_address(tmp_path):
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "none"))) as session:
        with pytest.raises(Unavailable) as raised:
            await AioHttp(session).send(Request(method="GET", url="http://h/secret?sig=hush"))

    assert "secret" not in raised.value.message
    assert "hush" not in raised.value.message
    assert raised.value.__cause__ is None


def test_request_prints_no_secret():
    request = Request(method="GET", url="https://h?sig=hush", headers={"authorization": "hush"}, body=b"hush")

    assert "hush" not in repr(request)


async def test_file_that_holds_no_certificates_is_an_error(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("nothing")

    with pytest.raises(OSError, match="certificate"):
        async with open_http(str(file)):
            pass
