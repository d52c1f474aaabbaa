"""``sluice version``: what is installed."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from importlib.metadata import entry_points, version


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no arguments."""


def run(_args: argparse.Namespace, _env: Mapping[str, str]) -> int:
    vendors = ", ".join(sorted(point.name for point in entry_points(group="gateway.vendors")))
    print(f"sluice {version('sluice-gateway')}")
    print(f"python {platform.python_version()}")
    print(f"vendors: {vendors}")
    return 0
