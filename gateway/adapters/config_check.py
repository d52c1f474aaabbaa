"""Everything that is wrong with a configuration, at once: what it says, its vendors and the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gateway.adapters.catalog_yaml import build_index
from gateway.adapters.storage_check import FindVendor, check_storages
from gateway.adapters.vendors import find_vendor
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import Draft, Loaded, load, locate, read
from gateway.config.schema import ServiceName


def read_whole(file: Path, env: Mapping[str, str], find: FindVendor = find_vendor) -> Draft:
    """Return what can be understood of a configuration, with every fault in the order of the file."""
    draft = read(file, env)
    faults = [*draft.faults, *locate(_further(draft, find), file)]
    faults.sort(key=lambda fault: (fault.line is None, fault.line or 0))
    return replace(draft, faults=tuple(faults))


def load_or_tell_all(file: Path, env: Mapping[str, str]) -> Loaded:
    """Return the configuration as ``load`` does, or raise with its faults those of vendors and catalog."""
    try:
        return load(file, env)
    except ConfigError:
        raise ConfigError(read_whole(file, env).faults) from None


def _further(draft: Draft, find: FindVendor) -> Iterator[Fault]:
    """Return what only shows when vendors and the catalog take the configuration up."""
    if draft.config is None:
        return
    yield from check_storages(draft.config, find, draft.broken)
    # The catalog is made of all shares and recipients: one that is broken shows faults that are not there.
    if ServiceName.CATALOG in draft.config.services.run and not draft.faults:
        try:
            build_index(draft.config)
        except ConfigError as exc:
            yield from exc.faults
