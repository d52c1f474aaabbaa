"""Opens what a configuration names for usage: where segments land, and where the tables are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from gateway.adapters.audit_outbox import Outbox
from gateway.adapters.audit_shipping import Shipper, Shipping
from gateway.adapters.place import open_below, open_directory
from gateway.adapters.shipping_metrics import PrometheusShippingMetrics
from gateway.adapters.storage_check import FindVendor
from gateway.adapters.storages import OpenStorages, StorageProcess
from gateway.adapters.vendors import find_vendor
from gateway.config.faults import ConfigError, Fault
from gateway.config.schema import Config, StorageConfig
from gateway.domain.location import Location, parse_location
from gateway.ports import StateStore


def audit_directory(config: Config) -> Path:
    """Return where a loaded configuration has its audit segments."""
    return Path(config.audit.directory) if config.audit.directory else Path(config.state_dir) / "audit"


@asynccontextmanager
async def shipping(config: Config, registry: CollectorRegistry) -> AsyncIterator[Shipping | None]:
    """Ship closed segments to where they are to land, while the block runs; None where they stay."""
    if not config.usage.landing:
        yield None
        return
    async with open_place(config, config.usage.landing, key="usage.landing") as landing:
        shipper = Shipper(Outbox(audit_directory(config)), landing, PrometheusShippingMetrics(registry))
        async with Shipping(shipper, config.grace).running() as running:
            yield running


@asynccontextmanager
async def open_place(
    config: Config, place: str, *, key: str, find: FindVendor = find_vendor
) -> AsyncIterator[StateStore]:
    """Give what is kept at a place that a key of the configuration names.

    With a storage of its own, and no other: who ships segments holds nothing that opens a table.
    """
    location = parse_location(place)
    entry = _covering(config, location)
    if entry is None and location.scheme == "file":
        async with open_directory(location, key=key, find=find) as store:
            yield store
        return
    if entry is None:
        raise ConfigError([Fault(path=key, message=f"no storage covers {location}: add one below storages")])
    alone = config.model_copy(update={"storages": (entry,), "shares": ()})
    async with OpenStorages(alone, StorageProcess(public_url=config.public_url), find=find) as storages:
        found = storages.find(location)
        if found is None:
            raise ConfigError([Fault(path=key, message=f"the storage {entry.name!r} did not open")])
        yield open_below(found, location, key=key)


def _covering(config: Config, location: Location) -> StorageConfig | None:
    prefixes = [(parse_location(entry.prefix), entry) for entry in config.storages or ()]
    covering = [(len(prefix.path), entry) for prefix, entry in prefixes if prefix.covers(location)]
    return max(covering, key=lambda found: found[0])[1] if covering else None
