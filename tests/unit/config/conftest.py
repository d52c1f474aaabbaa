"""Configurations from texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gateway.config.faults import Fault
from gateway.config.load import Draft, read

ReadText = Callable[..., Draft]
FaultsOf = Callable[..., dict[str, Fault]]


@pytest.fixture
def read_text(tmp_path: Path) -> ReadText:
    """Return what is understood of a text, as if it were a file."""

    def read_one(text: str, env: Mapping[str, str] | None = None) -> Draft:
        file = tmp_path / "server.yaml"
        file.write_text(text, encoding="utf-8")
        return read(file, env or {})

    return read_one


@pytest.fixture
def faults_of(read_text: ReadText) -> FaultsOf:
    """Return the faults of a text by path; what every test would have to give is added."""

    def find(text: str, env: Mapping[str, str] | None = None, *, complete: bool = True) -> dict[str, Fault]:
        head = "authorization: {bearerToken: 0123456789abcdef}\n" if complete else ""
        return {fault.path: fault for fault in read_text(head + text, env).faults}

    return find
