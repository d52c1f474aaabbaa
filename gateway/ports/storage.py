"""Kinds of stores, and what can be done with the places in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from gateway.domain.key import Keys
from gateway.domain.location import Location
from gateway.ports.clock import Clock, utcnow
from gateway.ports.issuing import CredentialIssuer, Cutter, Probe
from gateway.ports.log import LogReader
from gateway.ports.signing import Sessions, Signer
from gateway.ports.state import StateStore


class SparkAccess(Protocol):
    """How Spark reaches a storage as the storage's own identity."""

    async def settings(self) -> Mapping[str, str]:
        """Return the Hadoop settings for it, secrets among them: they go to a process' memory only."""

    def url(self, location: Location) -> str:
        """Return a location in the spelling that Spark reads and writes it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What can be done with the locations below a prefix. None: this store cannot, or not safely."""

    name: str
    prefix: Location
    reader: LogReader | None = None
    signer: Signer | None = None
    issuer: CredentialIssuer | None = None
    probe: Probe | None = None
    cutter: Cutter | None = None
    # Opens what is kept below a location of this storage.
    open_state: Callable[[Location], StateStore] | None = None
    spark: SparkAccess | None = None
    # Whether its credentials open directories that differ by upper and lower case only, which was accepted.
    folds_case: bool = False
    # What the configuration says of its credentials; a vendor leaves these alone.
    credential_life: timedelta = timedelta(hours=1)
    allow_root: bool = False


class StorageMetrics(Protocol):
    """What only a vendor can see of its store."""

    def observe_policy_size(self, storage: str, percent: int) -> None:
        """Note how much of the room for a session policy the last one took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """What a vendor is opened with."""

    name: str
    prefix: Location
    # The storage entry's own settings, checked by the vendor.
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    # Where recipients reach the gateway, for URLs that lead back to it.
    public_url: str
    # None where the process does not sign local URLs.
    url_keys: Keys | None = None
    # None where the process does not sign at all: nothing that it opens can.
    sessions: Sessions | None = None
    # None where nobody counts.
    metrics: StorageMetrics | None = None
    clock: Clock = utcnow


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionFault:
    """What is wrong with one of an entry's settings. Quotes no value, which may be a secret."""

    # Below ``options``; empty for what concerns them all.
    path: tuple[str | int, ...] = ()
    # In words that stand after the path.
    message: str
    # The nearest right name or value.
    suggestion: str = ""


class Vendor(Protocol):
    """A kind of store, found by entry point under the name that a storage entry gives."""

    # The schemes, as ``Location`` folds them, that this vendor can serve.
    schemes: frozenset[str]

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        """Return what is wrong with an entry's settings; empty when nothing is."""

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        """Return which files that sound settings name cannot be read here; elsewhere they may be there."""

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        """Return why the store never gives credentials of that life, in words; the settings are sound."""

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        """Return why no credential can be issued for a table there, in words; the settings are sound."""

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        """Return why no URL can be signed for a table there, in words; the settings are sound."""

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]: ...


class Storages(Protocol):
    def find(self, location: Location) -> Storage | None:
        """Return the storage with the longest prefix that covers the location."""
