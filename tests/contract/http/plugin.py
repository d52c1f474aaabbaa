"""A vendor from another distribution: local tables, with credentials that open nothing but look real."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location
from gateway.domain.scope import Scope
from gateway.ports import Clock, OptionFault, Storage, StorageSettings
from tests.repository import ROOT
from vendors.local import vendor as local

NAME = "issuing"

_ENTRY_POINTS = f"[gateway.vendors]\n{NAME} = {__name__}:vendor\n"
_METADATA = "Metadata-Version: 2.1\nName: sluice-test-vendor\nVersion: 1.0\n"


class _Issuer:
    """Makes keys of what it is told, and nothing else."""

    names_recipients = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def issue(self, scope: Scope) -> Credential:
        digest = hashlib.sha256(f"{scope.recipient}\n{scope.location}".encode()).hexdigest()
        key = f"ASIA{digest[:16].upper()}"
        return Credential(
            id=key,
            secret=AwsTempCredentials(
                access_key_id=key,
                secret_access_key=digest,
                session_token=f"session/{digest}",
                region="eu-west-1",
                endpoint="https://s3.test",
            ),
            expires_at=self._clock() + scope.life,
        )


class _Vendor:
    schemes = local.schemes

    def check(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return local.check(options)

    def check_files(self, options: Mapping[str, object]) -> Sequence[OptionFault]:
        return ()

    def check_life(self, options: Mapping[str, object], life: timedelta) -> Sequence[str]:
        return ()

    def check_url(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return local.check_url(options, location)

    def check_dir(self, options: Mapping[str, object], location: Location) -> Sequence[str]:
        return ()

    def open(self, settings: StorageSettings) -> AbstractAsyncContextManager[Storage]:
        return _opened(settings)


@asynccontextmanager
async def _opened(settings: StorageSettings) -> AsyncIterator[Storage]:
    async with local.open(settings) as storage:
        yield replace(storage, issuer=_Issuer(settings.clock))


vendor = _Vendor()


@contextmanager
def installed(directory: Path) -> Iterator[None]:
    """Let processes that are started meanwhile find the vendor, as if pip had installed it."""
    info = directory / "sluice_test_vendor-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(_METADATA)
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(directory), str(ROOT), *([before] if before else [])])
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
