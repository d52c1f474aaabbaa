"""The official client in its own environment, as an object here."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any, Final

import pytest

from tests.repository import ROOT

ENVIRONMENT = ROOT / ".venv-client"
PYTHON = ENVIRONMENT / "bin" / "python"
# The client prints what a server answered in a narrow column: a message is broken wherever its line is full.
_BREAK: Final = re.compile(r"(?P<quote>['\"])\n\s+(?P=quote)")


class ClientError(Exception):
    """What the client raised, in its own words."""


class OfficialClient:
    """Calls the functions of a module in a process that lives as long as this object."""

    def __init__(self, module: str = "tests.e2e.read_with_client") -> None:
        require_environment()
        self._process = subprocess.Popen(
            [PYTHON, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(),
        )

    def call(self, name: str, *arguments: object, **options: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(
            json.dumps({"call": name, "arguments": arguments, "options": options}, default=str) + "\n"
        )
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ClientError(_BREAK.sub("", answer["error"]))
        return answer["result"]

    def close(self) -> None:
        self._process.communicate()


def require_environment() -> None:
    if not PYTHON.exists():
        pytest.fail("the environment of the client is missing: `make environments` creates it", pytrace=False)


def environment() -> dict[str, str]:
    """Return this process' environment without what would change which packages the client finds."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
