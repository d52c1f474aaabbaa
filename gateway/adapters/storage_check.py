"""What only the vendors can say of a configuration's storages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.adapters.storage_plan import DEFAULT_VENDORS, locations_of, tables_of
from gateway.adapters.vendors import VendorNotFound, find_vendor
from gateway.config.checks.storage import Coverage
from gateway.config.faults import Fault
from gateway.config.schema import Config, StorageConfig, TableConfig
from gateway.domain.location import parse_location
from gateway.domain.table import AccessMode
from gateway.ports import Vendor

FindVendor = Callable[[str], Vendor]


def check_storages(config: Config, find: FindVendor = find_vendor) -> Sequence[Fault]:
    """Return every fault of a loaded configuration; imports the vendors that it needs."""
    if config.storages is None:
        return list(_check_defaults(config, find))
    return [*_check_entries(config.storages, find), *_check_dirs(config, config.storages, find)]


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


def _check_dirs(config: Config, entries: Sequence[StorageConfig], find: FindVendor) -> Iterator[Fault]:
    """Ask the vendors whether each table with dir access can have credentials for its directories."""
    coverage = Coverage(entries)
    vendors = {number: vendor for number, entry in enumerate(entries) if (vendor := _sound(entry, find))}
    lives = [entry.credential_life or config.credentials.life for entry in entries]
    refused: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for path, name, table in _dir_tables(config):
        for where, location in locations_of(path, table):
            number = coverage.find(location)
            # What covers nothing, or is not in order itself, has been reported as such.
            if number is None or number not in vendors:
                continue
            for message in vendors[number].check_dir(entries[number].options, location, lives[number]):
                refused.setdefault((number, message), []).append((where, name))
    for (number, message), places in refused.items():
        yield _refused(entries[number], message, places)


def _refused(entry: StorageConfig, message: str, places: Sequence[tuple[str, str]]) -> Fault:
    """Tell of the first place: what is said of a whole storage is the same for all its tables."""
    (where, name), *others = places
    more = f" (and at {len(others):,} more places)" if others else ""
    words = f"table {name} cannot offer dir access on the storage {entry.name!r}: {message}{more}"
    return Fault(path=where, message=words)


def _sound(entry: StorageConfig, find: FindVendor) -> Vendor | None:
    """Return the vendor of an entry that it has nothing to say against."""
    try:
        vendor = find(entry.vendor)
    except VendorNotFound:
        return None
    is_sound = parse_location(entry.prefix).scheme in vendor.schemes and not vendor.check(entry.options)
    return vendor if is_sound else None


def _dir_tables(config: Config) -> Iterator[tuple[str, str, TableConfig]]:
    """Return each table with dir access, with its path in the file and its name."""
    for i, share in enumerate(config.shares):
        for j, schema in enumerate(share.schemas):
            for k, table in enumerate(schema.tables):
                if AccessMode.DIR in (table.access_modes or share.access_modes or ()):
                    path = f"shares[{i}].schemas[{j}].tables[{k}]"
                    yield path, f"{share.name}.{schema.name}.{table.name}", table


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
