"""Finds the programs that pip does not install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT


def installed(name: str) -> Path:
    """Return the program of a component, or fail the test; no test is skipped for it."""
    command = [sys.executable, str(ROOT / "deploy" / "dev" / "components.py"), "--where", name]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.fail(f"{found.stderr.strip()}; `make components` installs it", pytrace=False)
    return Path(found.stdout.strip())


def require_java() -> None:
    """Fail a test of Spark if Java or Maven is missing; none is skipped."""
    for name in ("java", "maven"):
        installed(name)
