"""An application that serves local files and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from gateway.edge.errors import answer, fault_of
from gateway.edge.handlers.files import FilesHandler


def files_app(handler: FilesHandler, prefix: str = "") -> web.Application:
    app = web.Application(middlewares=[_answering])
    app.router.add_route("*", f"{prefix}/files/{{storage}}/{{path:.+}}", handler.handle)
    return app


@web.middleware
async def _answering(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except ConnectionError:
        raise
    except Exception as exc:  # noqa: BLE001 -- as the edge does
        return answer(fault_of(exc))
