"""What a platform service may ask of the gRPC services: which methods, how often, how many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.domain.rate import Rate

# By service, as the configuration names them: ``Catalog`` is all of these, ``Catalog.Resolve`` one.
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "Catalog": ("Resolve", "ListShares", "GetShare", "ListSchemas", "ListTables", "ListAllTables"),
    "Snapshot": ("GetVersion", "GetMetadata", "Query", "Changes"),
    "Presign": ("Sign",),
    "Vending": ("Issue",),
}


def method_names() -> Iterator[str]:
    """Yield every name that a list of methods may have: services, and their methods."""
    for service, methods in METHODS.items():
        yield service
        yield from (f"{service}.{method}" for method in methods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Bounds of one caller; None: there is none."""

    # Names of services and methods. What is not named is denied, and an empty set denies all.
    methods: frozenset[str] | None = None
    rate: Rate | None = None
    concurrent_calls: int | None = None

    def permits(self, method: str) -> bool:
        """Tell whether ``Service.Method`` is named, by itself or by its service."""
        if self.methods is None:
            return True
        return method in self.methods or method.partition(".")[0] in self.methods


UNBOUNDED: Final = Allowance()
