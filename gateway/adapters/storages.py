"""The storages of a configuration: opened through their vendors, found by location, replaced on a reload."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Protocol, Self

from gateway.adapters.storage_check import FindVendor, check_storages
from gateway.adapters.storage_plan import PlannedStorage, plan_storages
from gateway.adapters.vendors import find_vendor
from gateway.config.faults import ConfigError
from gateway.config.schema import Config
from gateway.domain.key import Keys
from gateway.domain.location import Location
from gateway.ports import Clock, Sessions, Storage, StorageMetrics, StorageSettings, utcnow

# A file without ``storages`` has one for each table: the loop is let go in between.
_OPENED_AT_ONCE: Final = 100

log = logging.getLogger(__name__)


class Remembered(Protocol):
    """What a process remembers of a storage that it opens."""

    @property
    def sessions(self) -> Sessions | None:
        """Return what its vendor signs with; None where the process does not sign."""

    def wrap(self, storage: Storage) -> Storage:
        """Put a cache around what the vendor opened."""


class _Nothing:
    def __init__(self, _: PlannedStorage) -> None:
        self.sessions = None

    def wrap(self, storage: Storage) -> Storage:
        return storage


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageProcess:
    """What all storages of a process are opened with."""

    public_url: str
    url_keys: Keys | None = None
    clock: Clock = utcnow
    metrics: StorageMetrics | None = None
    remember: Callable[[PlannedStorage], Remembered] = _Nothing
    # How long storages that were replaced stay open for those who have found one.
    grace: timedelta = timedelta(seconds=30)


class OpenStorages:
    """Is the port ``Storages`` while its block is entered."""

    def __init__(
        self,
        config: Config,
        process: StorageProcess,
        *,
        find: FindVendor = find_vendor,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._process = process
        self._find = find
        self._sleep = sleep
        self._lock = asyncio.Lock()
        self._opened = _Opened((), {}, AsyncExitStack())
        self._retired: dict[asyncio.Task[None], _Opened] = {}

    async def __aenter__(self) -> Self:
        self._opened = await self._open(await asyncio.to_thread(self._plan, self._config))
        return self

    async def __aexit__(self, *_: object) -> None:
        retired = dict(self._retired)
        for task in retired:
            task.cancel()
        await asyncio.gather(*retired, return_exceptions=True)
        for opened in (*retired.values(), self._opened):
            await opened.close()

    def find(self, location: Location) -> Storage | None:
        by_prefix = self._opened.by_prefix
        scheme, authority, path = location.identity
        while (storage := by_prefix.get((scheme, authority, path))) is None and path:
            path = path.rpartition("/")[0]
        return storage

    async def reload(self, config: Config) -> None:
        """Open what the configuration asks for in place of what is open; a failure leaves that in force."""
        async with self._lock:
            plan = await asyncio.to_thread(self._plan, config)
            if plan == self._opened.plan:
                return
            old, self._opened = self._opened, await self._open(plan)
            task = asyncio.create_task(self._retire(old))
            self._retired[task] = old
            task.add_done_callback(self._retired.pop)

    def _plan(self, config: Config) -> tuple[PlannedStorage, ...]:
        if faults := check_storages(config, self._find):
            raise ConfigError(faults)
        return plan_storages(config)

    async def _open(self, plan: Sequence[PlannedStorage]) -> _Opened:
        by_prefix = {}
        names = {planned.vendor for planned in plan}
        vendors = {name: await asyncio.to_thread(self._find, name) for name in names}
        async with AsyncExitStack() as stack:
            for number, planned in enumerate(plan):
                remembered = self._process.remember(planned)
                settings = self._settings(planned, remembered.sessions)
                storage = await stack.enter_async_context(vendors[planned.vendor].open(settings))
                by_prefix[planned.prefix.identity] = remembered.wrap(_configured(storage, planned))
                if number % _OPENED_AT_ONCE == 0:
                    await asyncio.sleep(0)
            return _Opened(tuple(plan), by_prefix, stack.pop_all())

    def _settings(self, planned: PlannedStorage, sessions: Sessions | None) -> StorageSettings:
        return StorageSettings(
            name=planned.name,
            prefix=planned.prefix,
            options=planned.options,
            public_url=self._process.public_url,
            url_keys=self._process.url_keys,
            sessions=sessions,
            metrics=self._process.metrics,
            clock=self._process.clock,
        )

    async def _retire(self, opened: _Opened) -> None:
        # Whoever has found a storage just now still works with it.
        await self._sleep(self._process.grace.total_seconds())
        await opened.close()


def _configured(storage: Storage, planned: PlannedStorage) -> Storage:
    return replace(
        storage,
        issuer=None if planned.url_only else storage.issuer,
        credential_life=planned.credential_life,
        allow_root=planned.allow_root,
    )


@dataclass(frozen=True, slots=True)
class _Opened:
    """The storages of one configuration, and what closes them."""

    plan: tuple[PlannedStorage, ...]
    by_prefix: Mapping[tuple[str, str, str], Storage]
    stack: AsyncExitStack

    async def close(self) -> None:
        try:
            await self.stack.aclose()
        except Exception:
            # They are out of use, and the others must be closed all the same.
            log.exception("a storage failed to close")
