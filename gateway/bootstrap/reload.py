"""Takes up a changed configuration file without dropping a request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from gateway.adapters.metrics import PrometheusMetrics
from gateway.config.faults import ConfigError
from gateway.config.load import Loaded
from gateway.config.schema import Config, RateConfig
from gateway.domain.rate import Rate
from gateway.errors import GatewayError

# What every process takes up as it runs; the rest is read once.
_LIVE: Final = frozenset({"shares", "recipients", "principals", "authorization", "storages", "limits"})

# Inode, time and size; None where there is no file.
Signature = tuple[int, int, int] | None

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimes:
    """How often a file is looked at, and for how long it must stay unchanged before it is read."""

    interval: timedelta = timedelta(seconds=2)
    settling: timedelta = timedelta(milliseconds=200)


class Reloader:
    """Watches a file and applies what changed; a broken file is refused and the old one stays in force."""

    def __init__(
        self,
        *,
        config: Config,
        source: Callable[[], Loaded],
        file: Path,
        apply: Callable[[Config], Awaitable[str]],
        metrics: PrometheusMetrics,
        times: WatchTimes = WatchTimes(),  # noqa: B008  # frozen
    ) -> None:
        self._config = config
        self._source = source
        self._file = file
        self._apply = apply
        self._metrics = metrics
        self._times = times
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Read the file again soon, whether or not it looks changed."""
        self._asked.set()

    async def watch(self) -> None:
        seen = await asyncio.to_thread(file_signature, self._file)
        # What runs was read before all else was started: what was changed since would never be noticed.
        if await self._is_behind():
            await self.reload()
        while True:
            try:
                async with asyncio.timeout(self._times.interval.total_seconds()):
                    await self._asked.wait()
            except TimeoutError:
                pass
            now = await asyncio.to_thread(file_signature, self._file)
            if now == seen and not self._asked.is_set():
                continue
            self._asked.clear()
            seen = await self._settled(now)
            await self.reload()

    async def _is_behind(self) -> bool:
        """Tell whether the file says something else by now, or nothing that can be understood."""
        try:
            loaded = await asyncio.to_thread(self._source)
        except Exception:  # noqa: BLE001 -- whatever it is, the reload tells of it
            return True
        return _live_part(self._config, loaded.config) != self._config

    async def _settled(self, signature: Signature) -> Signature:
        """Return the file's signature once it stays the same: not everybody replaces a file as a whole."""
        while True:
            await asyncio.sleep(self._times.settling.total_seconds())
            now = await asyncio.to_thread(file_signature, self._file)
            if now == signature:
                return now
            signature = now

    async def reload(self) -> bool:
        """Read the file and apply it; tell whether that succeeded."""
        try:
            loaded = await asyncio.to_thread(self._source)
            config = _live_part(self._config, loaded.config)
            generation = await self._apply(config)
        except Exception as exc:  # noqa: BLE001 -- whatever fails here, the next change must still be seen
            self._refuse(exc)
            return False
        for warning in loaded.warnings:
            log.warning("configuration: %s", warning)
        if fixed := _fixed_changes(config, loaded.config):
            log.warning("configuration: a change of %s needs a restart", ", ".join(fixed))
        self._config = config
        self._metrics.count_reload(generation, datetime.now(UTC))
        log.info("configuration reloaded")
        return True

    def _refuse(self, exc: Exception) -> None:
        # Of faults in the file, the message is all; of our own, the stack is.
        ours = None if isinstance(exc, ConfigError | GatewayError | OSError) else exc
        log.error("the changed configuration is refused, the old one stays in force: %s", exc, exc_info=ours)
        self._metrics.count_refused_reload()


class Rates:
    """The rate limit of each recipient; a reload replaces them all."""

    def __init__(self, config: Config) -> None:
        self.replace(config)

    def replace(self, config: Config) -> None:
        self._default = _rate(config.limits.rate)
        self._own = {entry.name: _rate(entry.rate) for entry in config.recipients if entry.rate is not None}

    def __call__(self, recipient: str) -> Rate:
        return self._own.get(recipient, self._default)


def file_signature(file: Path) -> Signature:
    # A ConfigMap's file is a link that is moved: the inode changes, the time may not.
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _live_part(running: Config, new: Config) -> Config:
    """Return what runs, with what of the new configuration can be taken up as it does."""
    live = {name: getattr(new, name) for name in _LIVE}
    # Checked against listeners that are yet to come, so it is withdrawn at once and given by a restart only.
    return running.model_copy(
        update=live | {"allow_anonymous": running.allow_anonymous and new.allow_anonymous}
    )


def _fixed_changes(taken: Config, new: Config) -> list[str]:
    fields = Config.model_fields
    changed = [name for name in fields if name not in _LIVE and getattr(taken, name) != getattr(new, name)]
    return [fields[name].alias or name for name in changed]


def _rate(config: RateConfig) -> Rate:
    return Rate(requests_per_second=config.requests_per_second, burst=config.burst)
