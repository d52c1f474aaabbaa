"""promtool on files that a test writes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.installed import installed


def promtool(*arguments: str | Path) -> str:
    """Run it, and return what it said; an answer of failure fails the test."""
    done = subprocess.run([_program(), *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@cache
def _program() -> Path:
    return installed("promtool")


def write_yaml(file: Path, content: Mapping[str, Any]) -> Path:
    # Prometheus reads YAML, and JSON is some.
    file.write_text(json.dumps(content))
    return file
