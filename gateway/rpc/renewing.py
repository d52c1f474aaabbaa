"""A channel that goes on with renewed certificates, while calls under way finish on the old connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, Final, cast

import grpc
from grpc import aio

from gateway.rpc.certificates import Certificates, Material

# How long a first connection may take.
_CONNECTING: Final = timedelta(seconds=10)
_OUTCOMES: Final = (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE)


class RenewingChannel:
    """Stands for a grpc.aio channel towards generated stubs, and has the latest one make each call."""

    def __init__(self, open_channel: Callable[[Material], aio.Channel], certificates: Certificates) -> None:
        self._open = open_channel
        self._certificates = certificates
        self._material = certificates.material
        self._current = _Generation(open_channel(self._material))
        self._retired: set[_Generation] = set()
        self._background: set[asyncio.Task[None]] = set()

    def as_channel(self) -> aio.Channel:
        return cast("aio.Channel", self)

    @property
    def material(self) -> Material:
        """Return what calls are made with now."""
        return self._material

    def unary_unary(self, method: str, **options: Any) -> Callable[..., Any]:
        return partial(self._begin, "unary_unary", method, options)

    def unary_stream(self, method: str, **options: Any) -> Callable[..., Any]:
        return partial(self._begin, "unary_stream", method, options)

    async def renew(self) -> bool:
        """Go over to the certificates in force once they open a connection; tell whether calls use them.

        Where they leave out an authority that was trusted, at once, connected or not: whoever holds one of
        its certificates must not be called any more, even if nobody else answers.
        """
        material = self._certificates.material
        if material is self._material:
            return True
        fresh = self._open(material)
        if material.trusts_all_of(self._material) and not await _is_connected(fresh):
            await fresh.close()
            return False
        self._replace(fresh, material)
        return True

    async def close(self, grace: float | None = None) -> None:
        for task in tuple(self._background):
            await task
        for generation in (*self._retired, self._current):
            await generation.channel.close(grace)

    def _replace(self, fresh: aio.Channel, material: Material) -> None:
        old, self._current, self._material = self._current, _Generation(fresh), material
        self._retired.add(old)
        old.retire(lambda: self._aside(self._close(old)))

    def _begin(self, kind: str, method: str, options: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        return self._current.begin(self._current.method(kind, method, options), *args, **kwargs)

    async def _close(self, generation: _Generation) -> None:
        await generation.channel.close()
        self._retired.discard(generation)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        # The loop keeps only weak references to tasks.
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class _Generation:
    """The channel of one set of certificates, and how many calls it has under way."""

    def __init__(self, channel: aio.Channel) -> None:
        self.channel = channel
        self._methods: dict[str, Callable[..., Any]] = {}
        self._calls = 0
        self._when_idle: Callable[[], None] | None = None

    def method(self, kind: str, name: str, options: dict[str, Any]) -> Callable[..., Any]:
        made = self._methods.get(name)
        if made is None:
            made = self._methods[name] = getattr(self.channel, kind)(name, **options)
        return made

    def begin(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        call = method(*args, **kwargs)
        # Counted here: a channel that is closed with a grace overlooks streams that nobody reads just now.
        self._calls += 1
        call.add_done_callback(self._finish)
        return call

    def retire(self, when_idle: Callable[[], None]) -> None:
        """Have something done when the last call has finished, which may be now."""
        self._when_idle = when_idle
        if not self._calls:
            when_idle()

    def _finish(self, _: object) -> None:
        self._calls -= 1
        if not self._calls and self._when_idle is not None:
            self._when_idle()


async def _is_connected(channel: aio.Channel) -> bool:
    """Tell whether a first attempt to connect succeeds."""
    try:
        async with asyncio.timeout(_CONNECTING.total_seconds()):
            state = channel.get_state(try_to_connect=True)
            while state not in _OUTCOMES:
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
    except TimeoutError:
        return False
    return state is grpc.ChannelConnectivity.READY
