"""The listener: where it listens, what it says when it cannot, how it stops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientSession, web

from gateway.edge.server import Limits, Listen, close_connections, serve
from gateway.errors import Unavailable
from tests.certificates import new_authority

# Seconds, for a stop that waits for nothing: less than the default grace and than any timeout of aiohttp's.
_SOON = 15


def application() -> web.Application:
    app = web.Application()

    async def quick(request: web.Request) -> web.Response:
        return web.Response(text="here")

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(int(request.query["pieces"])):
            await response.write(b"%d\n" % number)
            await asyncio.sleep(0.1)
        await response.write_eof()
        return response

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    app.router.add_get("/", quick)
    app.router.add_get("/slow", slow)
    app.router.add_get("/endless", endless)
    return app


async def test_any_port_is_given_when_none_is_asked_for() -> None:
    async with serve(application(), Listen(), Limits()) as port, ClientSession() as session:
        response = await session.get(f"http://127.0.0.1:{port}/")
        assert await response.text() == "here"


async def test_a_socket_that_is_bound_already_is_used() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        bound = sock.getsockname()[1]
        async with (
            serve(application(), Listen(sockets=(sock,)), Limits()) as port,
            ClientSession() as session,
        ):
            assert port == bound
            async with session.get(f"http://127.0.0.1:{port}/") as response:
                assert response.status == 200


async def test_several_sockets_are_served_alike_until_the_end() -> None:
    with socket.socket() as one, socket.socket() as other:
        for sock in (one, other):
            sock.bind(("127.0.0.1", 0))
        ports = [sock.getsockname()[1] for sock in (one, other)]
        async with ClientSession() as session:
            async with serve(application(), Listen(sockets=(one, other)), Limits()) as port:
                assert port == ports[0]
                for number in ports:
                    async with session.get(f"http://127.0.0.1:{number}/") as response:
                        assert await response.text() == "here"
            for number in ports:
                with pytest.raises(ClientConnectionError):
                    await session.get(f"http://127.0.0.1:{number}/")


async def test_a_port_that_is_taken_is_a_clear_error() -> None:
    async with serve(application(), Listen(), Limits()) as port:
        with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1:{port}: the port is taken"):
            async with serve(application(), Listen(port=port), Limits()):
                pass


async def test_a_host_that_is_not_ours_is_a_clear_error() -> None:
    with pytest.raises(Unavailable, match="cannot listen on"):
        async with serve(application(), Listen(host="203.0.113.1", port=1), Limits()):
            pass


async def test_tls_is_served_with_the_given_context(tmp_path: Path) -> None:
    tls = new_authority(tmp_path).issue("edge")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)
    trust = ssl.create_default_context(cafile=tls.ca)
    trust.check_hostname = False
    async with (
        serve(application(), Listen(ssl_context=context), Limits()) as port,
        ClientSession() as session,
    ):
        async with session.get(f"https://127.0.0.1:{port}/", ssl=trust) as response:
            assert await response.text() == "here"
        async with session.get(f"https://127.0.0.1:{port}/slow?pieces=2", ssl=trust) as response:
            assert await response.text() == "0\n1\n"


async def test_an_answer_under_way_is_finished_before_the_listener_stops() -> None:
    async with ClientSession() as session:
        async with serve(application(), Listen(), Limits(), grace=timedelta(minutes=1)) as port:
            response = await session.get(f"http://127.0.0.1:{port}/slow?pieces=5")
        assert await response.text() == "0\n1\n2\n3\n4\n"


async def test_an_answer_that_takes_longer_than_the_grace_is_cut_off() -> None:
    async with asyncio.timeout(_SOON), ClientSession() as session:
        async with serve(application(), Listen(), Limits(), grace=timedelta(milliseconds=100)) as port:
            response = await session.get(f"http://127.0.0.1:{port}/endless")
        with pytest.raises(Exception, match=r"payload|closed|reset|disconnected"):
            await response.text()


async def test_an_idle_connection_does_not_hold_up_the_stop() -> None:
    async with (
        asyncio.timeout(_SOON),
        serve(application(), Listen(), Limits(), grace=timedelta(hours=1)) as port,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"here")
    writer.close()


async def test_connections_are_closed_behind_their_answers_once_the_process_is_leaving() -> None:
    app, leaving = application(), asyncio.Event()
    close_connections(app, leaving.is_set)
    async with serve(app, Listen(), Limits()) as port, ClientSession() as session:
        for headers, is_leaving in ((None, False), ("close", True)):
            if is_leaving:
                leaving.set()
            async with session.get(f"http://127.0.0.1:{port}/") as response:
                assert await response.text() == "here"
                assert response.headers.get("Connection") == headers
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        # To the end of the connection.
        assert (await reader.read()).endswith(b"here")
        writer.close()
