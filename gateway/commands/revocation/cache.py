"""Drops what the shared cache holds for a recipient, and of storages whose credentials are everybody's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from gateway.adapters.cache.process import open_drops
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.keyring import open_keyring
from gateway.config.faults import ConfigError, Fault
from gateway.config.purpose import has_keys, runs_everything
from gateway.config.schema import Config
from gateway.domain.key import Keys, Purpose

# The cut-off does not hang on Redis: the moment is a part of what credentials are kept under.
_HOLDS: Final = "with the new configuration no gateway serves what is there"
_WHERE: Final = "run this where a gateway runs, with its user and environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    # None where there is no shared cache.
    done: bool | None
    words: str


# Takes the configuration, the recipient's name and the storages' names.
DropCached = Callable[[Config, str, Sequence[str]], Awaitable[Dropped]]


async def drop_cached(config: Config, recipient: str, storages: Sequence[str]) -> Dropped:
    """Remove the entries from Redis; one that is not there or does not answer is said in words."""
    if config.cache.redis is None:
        return Dropped(done=None, words="no Redis is configured; gateways forget with the new configuration")
    try:
        keys = _sealing_keys(config)
        async with open_drops(config.cache.redis, keys, CredentialMetrics(CollectorRegistry())) as drops:
            counts = [await drops.drop_recipient(recipient)]
            counts += [await drops.drop_storage(name) for name in storages]
    except ConfigError as exc:
        return Dropped(done=False, words=f"nothing was dropped from Redis: {exc}; {_HOLDS}")
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return Dropped(done=False, words=f"Redis cannot be reached, or refuses: {_HOLDS}")
    return Dropped(done=True, words=f"{sum(known):,} dropped from Redis")


def _sealing_keys(config: Config) -> Keys:
    """Return the keys that name the entries; never make up new ones, which would name nothing."""
    file = Path(config.state_dir, "embedded.key")
    if runs_everything(config.services.run) and not has_keys(config.keys) and not file.exists():
        raise ConfigError([Fault(path="keys", message=f"none are given, and there is no {file}: {_WHERE}")])
    return open_keyring(config, Path(config.state_dir)).keys(Purpose.SEALING)
