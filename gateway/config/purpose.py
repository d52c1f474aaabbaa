"""Which keys a service needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import SecretStr

from gateway.config.schema import KeysConfig, KeySetConfig, ServiceName
from gateway.domain.key import Purpose

# The edge serves the local files whose URLs presign signs.
PURPOSES: Final[Mapping[ServiceName, tuple[Purpose, ...]]] = {
    ServiceName.EDGE: (Purpose.LOCAL_URL,),
    ServiceName.CATALOG: (Purpose.LIST_PAGE,),
    ServiceName.SNAPSHOT: (Purpose.FILE_PAGE, Purpose.REFRESH),
    ServiceName.PRESIGN: (Purpose.SEALING, Purpose.LOCAL_URL),
    ServiceName.VENDING: (Purpose.SEALING,),
}
GRANT_SIGNER: Final = ServiceName.CATALOG
GRANT_VERIFIERS: Final = frozenset({ServiceName.SNAPSHOT, ServiceName.PRESIGN, ServiceName.VENDING})


def purposes_of(run: Sequence[ServiceName]) -> tuple[Purpose, ...]:
    """Return the purposes of all services of a process, each once."""
    return tuple(dict.fromkeys(purpose for name in ServiceName if name in run for purpose in PURPOSES[name]))


def runs_everything(run: Sequence[ServiceName]) -> bool:
    return set(run) == set(ServiceName)


def own_key(keys: KeySetConfig, purpose: Purpose) -> SecretStr | None:
    """Return the key that was given for this purpose alone."""
    return {
        Purpose.LIST_PAGE: keys.list_page,
        Purpose.FILE_PAGE: keys.file_page,
        Purpose.REFRESH: keys.refresh,
        Purpose.LOCAL_URL: keys.local_url,
        Purpose.SEALING: keys.sealing,
    }[purpose]


def has_keys(keys: KeysConfig) -> bool:
    """Tell whether any key was configured."""
    return keys != KeysConfig()
