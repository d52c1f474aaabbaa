"""Publishes a port: ``python -m tests.integration.image.port HERE:PORT THERE:PORT``."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress


async def main(here: str, there: str) -> None:
    host, _, port = here.rpartition(":")
    target, _, target_port = there.rpartition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(target, int(target_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))

    server = await asyncio.start_server(serve, host, int(port))
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await server.serve_forever()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
