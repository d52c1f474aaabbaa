"""Vendors by the name that a storage entry gives, imported only when one does."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from gateway.config.nearest import nearest
from gateway.ports import Vendor

GROUP: Final = "gateway.vendors"
_OWN: Final = "sluice-gateway"


class VendorNotFound(Exception):
    """There is no such vendor here, or what it needs is not installed."""

    def __init__(self, message: str, *, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        # The name that was probably meant.
        self.suggestion = suggestion


def find_vendor(name: str, points: Iterable[EntryPoint] | None = None) -> Vendor:
    """Return the installed vendor of this name, or raise ``VendorNotFound``."""
    installed: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP) if points is None else points:
        installed.setdefault(point.name, []).append(point)
    if name not in installed:
        raise VendorNotFound(
            f"there is no vendor {name!r} among those installed: {', '.join(sorted(installed))}",
            suggestion=nearest(name, sorted(installed)),
        )
    if len({point.value for point in installed[name]}) > 1:
        modules = ", ".join(sorted(point.value for point in installed[name]))
        raise VendorNotFound(
            f"several installed packages call their vendor {name!r}: {modules}; remove all but one"
        )
    return _load(installed[name][0])


def _load(point: EntryPoint) -> Vendor:
    try:
        return cast("Vendor", point.load())
    except ImportError as exc:
        package = point.dist.name if point.dist else _OWN
        # Ours is on no index.
        extra = (
            f"'.[{point.name}]' in a checkout of Sluice" if package == _OWN else f"'{package}[{point.name}]'"
        )
        raise VendorNotFound(
            f"the vendor {point.name!r} needs {exc.name or 'a package'}, which is not installed: "
            f"pip install {extra}"
        ) from exc
