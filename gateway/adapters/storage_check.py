"""What only the vendors can say of a configuration's storages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.adapters.storage_plan import DEFAULT_VENDORS
from gateway.adapters.storage_tables import Placed, find_placed
from gateway.adapters.vendors import VendorNotFound, find_vendor
from gateway.config.broken import Broken
from gateway.config.checks.storage import Coverage, is_possible_life, location_or_none
from gateway.config.faults import Fault
from gateway.config.path import Path, format_path
from gateway.config.schema import Config, ServiceName, StorageConfig
from gateway.domain.table import AccessMode
from gateway.ports import Vendor

FindVendor = Callable[[str], Vendor]

_NOTHING: Final = Broken()
# Names of stores whose vendor is called otherwise.
_PROFILES: Final = frozenset({"seaweedfs", "minio", "ceph"})
_MEANT: Final[Mapping[str, str]] = {
    "gcs": "gcp",
    "google": "gcp",
    "adls": "azure",
    "abfss": "azure",
    "cloudflare": "r2",
    "file": "local",
}


def check_storages(
    config: Config, find: FindVendor = find_vendor, broken: Broken = _NOTHING
) -> Sequence[Fault]:
    """Return every fault of what is not broken already; imports the vendors that are needed."""
    if not broken.leaves(("storages",)):
        return []
    if config.storages is None:
        return list(_check_defaults(config, find, broken))
    entries = _Entries(config=config, entries=config.storages, find=find, broken=broken)
    return [*entries.check(), *entries.check_tables()]


def warn_of_storages(config: Config, find: FindVendor = find_vendor) -> Sequence[str]:
    """Return what is wrong with a configuration without faults, if it is used on this machine."""
    return [
        f"{format_path(('storages', number, 'options', *fault.path))}: {fault.message}"
        for number, entry in enumerate(config.storages or ())
        for fault in find(entry.vendor).check_files(entry.options)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """The entries of ``storages``."""

    config: Config
    entries: Sequence[StorageConfig]
    find: FindVendor
    broken: Broken
    # The vendors by the entries' numbers, and the entries that they have nothing to say against.
    vendors: dict[int, Vendor] = field(default_factory=dict)
    sound: set[int] = field(default_factory=set)

    def check(self) -> Iterator[Fault]:
        for number, entry in enumerate(self.entries):
            if self.broken.spares(("storages", number, "vendor")):
                yield from self._check_entry(number, entry)

    def check_tables(self) -> Iterator[Fault]:
        """Return what tables offer and their storages cannot give; ``check`` has been run to its end."""
        if not self.broken.spares(*(("storages", number, "prefix") for number in range(len(self.entries)))):
            # A table might belong to the one that could not be read.
            return
        coverage = Coverage(self.entries)
        refused: dict[tuple[int, str], list[Placed]] = {}
        issuing = set()
        for placed in find_placed(self.config, self.broken):
            number = coverage.find(placed.location)
            # What covers nothing, or is not in order itself, has been reported as such.
            if number is None or number not in self.vendors:
                continue
            if AccessMode.DIR in placed.modes and number in self.sound:
                issuing.add(number)
            for message in self._refusals(placed, number):
                refused.setdefault((number, message), []).append(placed)
        for number in sorted(issuing):
            yield from self._check_life(number, self.entries[number])
        yield from (_refused(message, places) for (_, message), places in refused.items())

    def _check_entry(self, number: int, entry: StorageConfig) -> Iterator[Fault]:
        path: Path = ("storages", number)
        try:
            vendor = self.find(entry.vendor)
        except VendorNotFound as exc:
            yield _no_vendor(format_path((*path, "vendor")), entry.vendor, exc)
            return
        misplaced = list(self._check_prefix(path, entry, vendor))
        faults = list(self._check_options(path, entry, vendor))
        if not misplaced:
            self.vendors[number] = vendor
            if not faults and self._knows_options(path, entry):
                self.sound.add(number)
        yield from (*misplaced, *faults)

    def _check_prefix(self, path: Path, entry: StorageConfig, vendor: Vendor) -> Iterator[Fault]:
        prefix = location_or_none(entry.prefix) if self.broken.spares((*path, "prefix")) else None
        if prefix is not None and prefix.scheme not in vendor.schemes:
            schemes = ", ".join(sorted(vendor.schemes))
            message = f"the vendor {entry.vendor!r} serves locations of the scheme {schemes}"
            yield Fault(path=format_path((*path, "prefix")), message=message, found=repr(prefix.scheme))

    def _check_options(self, path: Path, entry: StorageConfig, vendor: Vendor) -> Iterator[Fault]:
        for fault in vendor.check(entry.options) if self._knows_options(path, entry) else ():
            place = format_path((*path, "options", *fault.path))
            yield Fault(path=place, message=fault.message, suggestion=fault.suggestion)

    def _knows_options(self, path: Path, entry: StorageConfig) -> bool:
        # Where there are none, they may stand under a key that nobody knows.
        return self.broken.spares((*path, "options") if entry.options else path)

    def _check_life(self, number: int, entry: StorageConfig) -> Iterator[Fault]:
        credentials = self.config.credentials
        path: Path = ("storages", number, "credentialLife")
        whose = ""
        if entry.credential_life is None and "life" in credentials.model_fields_set:
            path, whose = ("credentials", "life"), f"for the storage {entry.name!r}: "
        life = entry.credential_life or credentials.life
        # What is no life for any vendor has been reported.
        if self.broken.spares(path) and is_possible_life(life):
            for message in self.vendors[number].check_life(entry.options, life):
                yield Fault(path=format_path(path), message=f"{whose}{message}")

    def _refusals(self, placed: Placed, number: int) -> Iterator[str]:
        vendor, entry = self.vendors[number], self.entries[number]
        if number not in self.sound:
            return
        if AccessMode.URL in placed.modes:
            for message in vendor.check_url(entry.options, placed.location):
                yield f"url access on the storage {entry.name!r}: {message}"
        if AccessMode.DIR in placed.modes:
            for message in vendor.check_dir(entry.options, placed.location):
                yield f"dir access on the storage {entry.name!r}: {message}"


def _check_defaults(config: Config, find: FindVendor, broken: Broken) -> Iterator[Fault]:
    """Name each vendor that is missing, or cannot serve, once: where it is needed first."""
    missing: dict[str, Fault] = {}
    refused: dict[tuple[str, str], list[Placed]] = {}
    # Elsewhere, the process that signs may have storages of its own.
    signs_here = ServiceName.PRESIGN in config.services.run
    for placed in find_placed(config, broken):
        name = DEFAULT_VENDORS[placed.location.scheme]
        if name in missing:
            continue
        try:
            vendor = find(name)
        except VendorNotFound as exc:
            missing[name] = Fault(
                path=format_path(placed.path), message=exc.message, suggestion=exc.suggestion
            )
            continue
        if AccessMode.URL in placed.modes and signs_here:
            for message in vendor.check_url({}, placed.location):
                refused.setdefault((name, message), []).append(placed)
    yield from missing.values()
    yield from (_refused(f"url access: {message}", places) for (_, message), places in refused.items())


def _refused(message: str, places: Sequence[Placed]) -> Fault:
    """Tell of the first place: what is said of a whole storage is the same for all its tables."""
    first, *others = places
    more = f" (and at {len(others):,} more place{'s' if len(others) > 1 else ''})" if others else ""
    words = f"table {first.table} cannot offer {message}{more}"
    return Fault(path=format_path(first.path), message=words)


def _no_vendor(path: str, name: str, exc: VendorNotFound) -> Fault:
    store = name.lower()
    if store in _PROFILES:
        words = f"there is no vendor {name!r}: set vendor: s3, with options.profile: {store}"
        return Fault(path=path, message=words)
    return Fault(path=path, message=exc.message, suggestion=_MEANT.get(store, exc.suggestion))
