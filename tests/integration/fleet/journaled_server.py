"""``sluice serve``, and nothing else but that each call is written into a journal beside the configuration.

A metric tells what a process had in hand a moment ago; the journal of one that is held still or killed tells
what it has in hand now.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from gateway.__main__ import main
from gateway.rpc.metadata import request_id_of
from gateway.rpc.status import OUR_METHODS
from tests.integration.fleet.journal import CALL, FILE, WATCH, Journal

_WATCH_METHOD = "/grpc.health.v1.Health/Watch"

Handler = Any  # As grpc does not export what it is.


class JournalInterceptor(aio.ServerInterceptor):
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not (method == _WATCH_METHOD or method.startswith(OUR_METHODS)):
            return handler
        note = self._note_watch if method == _WATCH_METHOD else self._note_call
        if handler.unary_unary:
            return handler._replace(unary_unary=_noted(handler.unary_unary, note))
        return handler._replace(unary_stream=_noted(handler.unary_stream, note))

    def _note_call(self, context: Any) -> None:
        self._note(CALL, request_id_of(context), context)

    def _note_watch(self, context: Any) -> None:
        self._note(WATCH, context.peer(), context)

    def _note(self, kind: str, key: str, context: Any) -> None:
        self._journal.begin(kind, key)
        # When the last of the answer has left the process, which is after its last line of code has run.
        context.add_done_callback(lambda _: self._journal.end(kind, key))


def _noted(method: Callable[..., Any], note: Callable[[Any], None]) -> Callable[..., Any]:
    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        note(context)
        async with aclosing(method(request, context)) as messages:
            async for message in messages:
                yield message

    async def call(request: Any, context: Any) -> Any:
        note(context)
        return await method(request, context)

    return stream if inspect.isasyncgenfunction(method) else call


if __name__ == "__main__":
    interceptor = JournalInterceptor(Journal(Path(sys.argv[-1]).with_name(FILE)))
    open_server = aio.server

    def journaled_server(*, interceptors: Sequence[aio.ServerInterceptor], **options: Any) -> aio.Server:
        return open_server(interceptors=[interceptor, *interceptors], **options)

    # In this process alone, and of gRPC's: all that the gateway itself does stays as it is.
    aio.server = journaled_server  # type: ignore[assignment]  # it is called by keywords
    main()
