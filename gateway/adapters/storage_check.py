"""What only the vendors can say of a configuration's storages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.adapters.storage_plan import DEFAULT_VENDORS, locations_of, tables_of
from gateway.adapters.vendors import VendorNotFound, find_vendor
from gateway.config.faults import Fault
from gateway.config.schema import Config, StorageConfig
from gateway.domain.location import parse_location
from gateway.ports import Vendor

FindVendor = Callable[[str], Vendor]


def check_storages(config: Config, find: FindVendor = find_vendor) -> Sequence[Fault]:
    """Return every fault of a loaded configuration; imports the vendors that it needs."""
    if config.storages is None:
        return list(_check_defaults(config, find))
    return list(_check_entries(config.storages, find))


def _check_entries(entries: Sequence[StorageConfig], find: FindVendor) -> Iterator[Fault]:
    for number, entry in enumerate(entries):
        path = f"storages[{number}]"
        try:
            vendor = find(entry.vendor)
        except VendorNotFound as exc:
            yield Fault(path=f"{path}.vendor", message=exc.message, suggestion=exc.suggestion)
            continue
        scheme = parse_location(entry.prefix).scheme
        if scheme not in vendor.schemes:
            schemes = ", ".join(sorted(vendor.schemes))
            message = f"the vendor {entry.vendor!r} serves locations of the scheme {schemes}"
            yield Fault(path=f"{path}.prefix", message=message, found=repr(scheme))
        for message in vendor.check(entry.options):
            yield Fault(path=f"{path}.options", message=message)


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
