"""What is wrong with the storages of a configuration, and which of its tables have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.adapters.storage_plan import DEFAULT_VENDORS, locations_of, tables_of
from gateway.adapters.vendors import VendorNotFound, find_vendor
from gateway.config.faults import Fault
from gateway.config.schema import Config, StorageConfig
from gateway.domain.location import Location, parse_location
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument
from gateway.ports import Vendor

FindVendor = Callable[[str], Vendor]


def check_storages(config: Config, find: FindVendor = find_vendor) -> Sequence[Fault]:
    """Return every fault, also of the tables that no storage covers; imports the vendors that are named."""
    if config.storages is None:
        return [*_check_defaults(config, find), *_check_url_only(config)]
    return [
        *_check_entries(config.storages, find),
        *_check_distinct(config.storages),
        *_check_covered(config, config.storages),
    ]


def _check_entries(entries: Sequence[StorageConfig], find: FindVendor) -> Iterator[Fault]:
    for number, entry in enumerate(entries):
        path = f"storages[{number}]"
        prefix = _find_prefix(entry)
        if isinstance(prefix, InvalidArgument):
            yield Fault(path=f"{path}.prefix", message=prefix.message)
        try:
            vendor = find(entry.vendor)
        except VendorNotFound as exc:
            yield Fault(path=f"{path}.vendor", message=exc.message, suggestion=exc.suggestion)
            continue
        if isinstance(prefix, Location) and prefix.scheme not in vendor.schemes:
            schemes = ", ".join(sorted(vendor.schemes))
            message = f"the vendor {entry.vendor!r} serves locations of the scheme {schemes}"
            yield Fault(path=f"{path}.prefix", message=message, found=repr(prefix.scheme))
        for message in vendor.check(entry.options):
            yield Fault(path=f"{path}.options", message=message)


def _check_distinct(entries: Sequence[StorageConfig]) -> Iterator[Fault]:
    names: dict[str, int] = {}
    prefixes: dict[Location, int] = {}
    for number, entry in enumerate(entries):
        if (first := names.setdefault(entry.name, number)) != number:
            message = f"storages[{first}] has this name already"
            yield Fault(path=f"storages[{number}].name", message=message, found=repr(entry.name))
        prefix = _find_prefix(entry)
        if isinstance(prefix, Location) and (first := prefixes.setdefault(prefix, number)) != number:
            message = f"storages[{first}] has this prefix already"
            yield Fault(path=f"storages[{number}].prefix", message=message, found=repr(entry.prefix))


def _check_covered(config: Config, entries: Sequence[StorageConfig]) -> Iterator[Fault]:
    prefixes = [prefix for entry in entries if isinstance(prefix := _find_prefix(entry), Location)]
    for path, table in tables_of(config):
        for where, location in locations_of(path, table):
            if not any(prefix.covers(location) for prefix in prefixes):
                message = "no entry of storages has a prefix that covers this location"
                yield Fault(path=where, message=message, found=repr(str(location)))


def _check_defaults(config: Config, find: FindVendor) -> Iterator[Fault]:
    """Name each missing vendor once, where it is needed first."""
    checked = set()
    for path, table in tables_of(config):
        for where, location in locations_of(path, table):
            if location.scheme in checked:
                continue
            checked.add(location.scheme)
            try:
                find(DEFAULT_VENDORS[location.scheme])
            except VendorNotFound as exc:
                yield Fault(path=where, message=exc.message, suggestion=exc.suggestion)


def _check_url_only(config: Config) -> Iterator[Fault]:
    message = (
        "dir access needs a storages entry for the location: without storages, tables offer url access only"
    )
    for path, table in tables_of(config):
        if AccessMode.DIR in (table.access_modes or ()):
            yield Fault(path=f"{path}.accessModes", message=message)
    for number, share in enumerate(config.shares):
        if AccessMode.DIR in (share.access_modes or ()):
            yield Fault(path=f"shares[{number}].accessModes", message=message)


def _find_prefix(entry: StorageConfig) -> Location | InvalidArgument:
    try:
        return parse_location(entry.prefix)
    except InvalidArgument as exc:
        return exc
