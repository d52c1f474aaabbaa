"""``sluice verify-storage``: prove what each storage's credentials open, and what they do not."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.adapters.storage_check import FindVendor
from gateway.adapters.vendors import find_vendor
from gateway.commands.config_argument import add_config_argument
from gateway.commands.dir_access import choose_storages, dir_locations, open_storage, reason
from gateway.commands.verification.check import not_proved
from gateway.commands.verification.ground import PROBES
from gateway.commands.verification.hands import Hands
from gateway.commands.verification.inspection import Inspection, Inspector, Places
from gateway.commands.verification.report import Report, Verified
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import load
from gateway.config.schema import Config, StorageConfig
from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument
from gateway.ports import Clock, OptionFault, Storage, utcnow

_EPILOG: Final = """\
For each storage a credential is issued as for a recipient, and used: it must read and list its own
directory, and the store itself must refuse it everything else: directories whose names begin alike,
neighbours, the parent, the whole bucket, writing and deleting. An error is not a denial.

Where the storage's own identity may write, the credential is tried on probe objects below
PREFIX/_sluice_verify/, which are removed again. Where it may not, as we recommend, tables of the
catalog are read instead: one is inside, up to five of a kind outside. --at names another directory
inside, and each that --outside names is tried in any case. What exists is never overwritten or deleted.

The exit status is 0 when everything was proved, 1 when a credential opens what it must not, and 2 when
something could not be proved.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_config_argument(parser, "the configuration")
    parser.add_argument(
        "--storage", metavar="NAME", action="append", default=[], help="verify this storage only; repeatable"
    )
    parser.add_argument(
        "--at", metavar="LOCATION", type=_location, help="issue the credential for this directory of objects"
    )
    parser.add_argument(
        "--outside",
        metavar="LOCATION",
        type=_location,
        action="append",
        default=[],
        help="a directory of objects that the credential must not open; repeatable",
    )
    parser.add_argument(
        "--format", choices=["table", "json"], default="table", help="how to print it (default: table)"
    )


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    config = load(args.config, env).config
    entries = select_storages(config, args.storage, args.at)
    verifier = Verifier(config=config, at=args.at, outside=assign_outside(args.outside, entries, args.at))
    report = asyncio.run(verifier.verify(entries))
    print(report.to_json() if args.format == "json" else report.to_text())
    return report.exit_status


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Verifies storages one after the other: a fault of one says nothing about the next."""

    config: Config
    at: Location | None = None
    # By the names of the storages that they lie on.
    outside: Mapping[str, Sequence[Location]] = field(default_factory=dict)
    find: FindVendor = find_vendor
    clock: Clock = utcnow

    async def verify(self, entries: Sequence[StorageConfig]) -> Report:
        return Report([await self._verify(entry) for entry in entries])

    async def _verify(self, entry: StorageConfig) -> Verified:
        inspection: Inspection | None
        try:
            async with open_storage(self.config, entry, self.find) as storage:
                inspection = await self._inspect(storage, entry)
        except Exception as exc:  # noqa: BLE001 -- whatever a vendor's SDK raises proves nothing
            advice = f"{reason(exc)}; see whether `sluice check-config` accepts the storage"
            inspection = Inspection(rows=[not_proved("open the storage", "opened", "failed", advice)])
        return Verified(name=entry.name, vendor=entry.vendor, prefix=entry.prefix, inspection=inspection)

    async def _inspect(self, storage: Storage, entry: StorageConfig) -> Inspection | None:
        if storage.issuer is None:
            return None
        # Said here by name: a store that is asked without them fails in some other words.
        if unread := self.find(entry.vendor).check_files(entry.options):
            rows = [not_proved("read its files", "read", "failed", _words(fault)) for fault in unread]
            return Inspection(rows=rows)
        if storage.probe is None:
            advice = f"the vendor {entry.vendor} cannot try its credentials; do it with the store's own tools"
            return Inspection(rows=[not_proved("try a credential", "tried", "cannot", advice)])
        inspector = Inspector(
            hands=Hands(storage, storage.issuer, storage.probe),
            places=self._places(storage),
            life=storage.credential_life,
            progress=lambda step: _show(f"{entry.name} ({entry.vendor}): {step}"),
            clock=self.clock,
        )
        return await inspector.inspect()

    def _places(self, storage: Storage) -> Places:
        return Places(
            prefix=storage.prefix,
            tables=[one.location for one in dir_locations(self.config) if one.storage == storage.name],
            at=self.at,
            outside=self.outside.get(storage.name, ()),
            folds_case=storage.folds_case,
        )


def select_storages(config: Config, names: Sequence[str], at: Location | None) -> list[StorageConfig]:
    """Return the storages to verify; raise ``ConfigError`` if there are none.

    Without names these are all storages, and with ``at`` only the one of that directory.
    """
    entries = choose_storages(config, names)
    if not entries:
        message = "the configuration names no storages, so no credentials are issued: add storages: to it"
        raise _refusal(message)
    if at is None:
        return entries
    entry = _longest(entries, at)
    if entry is None:
        raise _refusal(f"--at {at} lies below no storage; there are: {_listed(entries)}")
    return [entry]


def assign_outside(
    outside: Sequence[Location], entries: Sequence[StorageConfig], at: Location | None
) -> dict[str, list[Location]]:
    """Return the directories by their storage's name; raise ``ConfigError`` for one that cannot be tried."""
    assigned: dict[str, list[Location]] = {}
    for location in dict.fromkeys(outside):
        entry = _longest(entries, location)
        if entry is None:
            raise _refusal(f"--outside {location} lies below no storage that is verified: {_listed(entries)}")
        inside = at or parse_location(entry.prefix).child(PROBES)
        if location.covers(inside) or inside.covers(location):
            named = f"--at {at}" if at else f"the storage {entry.name}"
            raise _refusal(f"--outside {location} is not outside of {named}: name a directory beside it")
        assigned.setdefault(entry.name, []).append(location)
    return assigned


def _longest(entries: Sequence[StorageConfig], location: Location) -> StorageConfig | None:
    """Return the storage that a location lies on: the longest prefix wins, as it does for a table."""
    covering = [entry for entry in entries if parse_location(entry.prefix).covers(location)]
    return max(covering, key=lambda entry: len(parse_location(entry.prefix).path), default=None)


def _listed(entries: Sequence[StorageConfig]) -> str:
    return ", ".join(f"{entry.name} ({entry.prefix})" for entry in entries)


def _refusal(message: str) -> ConfigError:
    return ConfigError([Fault(path="", message=message)])


def _words(fault: OptionFault) -> str:
    return f"{'.'.join(map(str, ('options', *fault.path)))} {fault.message}"


def _location(text: str) -> Location:
    try:
        return parse_location(text)
    except InvalidArgument as exc:
        raise argparse.ArgumentTypeError(exc.message) from None


def _show(step: str) -> None:
    print(f"verifying: {step}", file=sys.stderr, flush=True)
