"""Where the programs are that pip does not bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT


def installed(name: str) -> Path:
    """Return the program of a component, or fail the test: who runs `system` tests wants them run."""
    command = [sys.executable, str(ROOT / "deploy" / "dev" / "components.py"), "--where", name]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.fail(f"{found.stderr.strip()}; `make components` installs it", pytrace=False)
    return Path(found.stdout.strip())
