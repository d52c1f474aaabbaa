"""Tables on the local file system: the gateway serves their files itself, by URLs that it signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

from gateway.domain.location import Location
from gateway.ports import OptionFault, Storage, StorageSettings, Vendor
from vendors.local.config import check
from vendors.local.reader import LocalReader
from vendors.local.signer import LocalSigner
from vendors.local.spark import LocalSpark
from vendors.local.state import LocalState


class LocalVendor:
    """Reads and signs. There is no credential for a directory of a file system, so it issues none."""

    schemes = frozenset({"file"})

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return []

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return []

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return ["a local storage has no credentials for its directories: set accessModes: [url]"]

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return []

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]:
        # A process that was not given the keys reads only.
        signer = LocalSigner(settings, settings.url_keys) if settings.url_keys else None
        reader = LocalReader(settings.prefix)
        return nullcontext(
            Storage(
                name=settings.name,
                prefix=settings.prefix,
                reader=reader,
                signer=signer,
                spark=LocalSpark(),
                open_state=lambda location: LocalState(Path("/", location.path)),
            )
        )


vendor: Vendor = LocalVendor()
