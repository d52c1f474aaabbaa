"""The peer of a query: an aiohttp server that streams bytes from its memory, and does nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from aiohttp import web

from tests.ports import free_port
from tests.repository import ROOT

# About a page of the gateway's answers.
PIECE = 1024 * 1024


@contextmanager
def streaming(body: Path) -> Iterator[tuple[str, int]]:
    """Serve the content of a file at any path; give the origin and the process."""
    port = free_port()
    command = [sys.executable, "-m", "bench.bare_stream", str(port), str(body)]
    pipe = subprocess.PIPE
    # It ends when its standard input does, however this process ends.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            assert process.stdin is not None
            process.stdin.close()


async def _serve(port: int, body: Path) -> None:
    content = memoryview(await asyncio.to_thread(body.read_bytes))
    pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson; charset=utf-8"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
