"""The peer of the edge: an aiohttp server that gives recorded answers and does nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from urllib.request import Request, urlopen

import uvloop
from aiohttp import web

# The server writes these by itself.
_OWN = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    method: str
    path: str
    headers: dict[str, str]
    body: str
    chunked: bool


def record(origin: str, path: str, token: str, method: str = "GET") -> Answer:
    """Ask the real server once, and keep what it says."""
    headers = {"Authorization": f"Bearer {token}"}
    request = Request(origin + path, headers=headers, method=method)  # noqa: S310 -- our own server
    with urlopen(request) as response:  # noqa: S310 -- our own server
        body = response.read().decode()
        headers = {name: value for name, value in response.headers.items() if name.lower() not in _OWN}
        return Answer(
            method=method,
            path=path,
            headers=headers,
            body=body,
            chunked="chunked" in response.headers.get("transfer-encoding", ""),
        )


def command(port: int, *, with_uvloop: bool) -> list[str]:
    """Return the command of a server; it takes the answers as JSON on its standard input."""
    return [sys.executable, "-m", "bench.bare", str(port), "uvloop" if with_uvloop else "asyncio"]


def to_json(answers: list[Answer]) -> str:
    return json.dumps([asdict(answer) for answer in answers])


def _application(answers: list[Answer]) -> web.Application:
    application = web.Application()
    for answer in answers:
        application.router.add_route(answer.method, answer.path.partition("?")[0], _handler(answer))
    return application


def _handler(answer: Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
    body = answer.body.encode()

    async def handle(_: web.Request) -> web.Response:
        response = web.Response(body=body, headers=answer.headers)
        if answer.chunked:
            response.enable_chunked_encoding()
        return response

    return handle


async def _serve(port: int, answers: list[Answer]) -> None:
    runner = web.AppRunner(_application(answers), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    recorded = [Answer(**answer) for answer in json.loads(sys.stdin.read())]
    factory = uvloop.new_event_loop if sys.argv[2] == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as loop:
        loop.run(_serve(int(sys.argv[1]), recorded))
