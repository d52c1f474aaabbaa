"""A process imports what it runs before it reports ready, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.deployments import SERVICES, Settings, split_keys, write_yaml

# Starts processes.
pytestmark = pytest.mark.slow

SDKS = {"boto3", "botocore", "azure", "google.auth", "google.cloud", "obstore", "redis"}
PARSERS = {"polars", "sqlglot"}
CACHE = "gateway.adapters.cache"
# What a process must not import, by the only service that it runs.
UNUSED = {
    "edge": {*SDKS, *PARSERS, CACHE, "gateway.services"},
    "catalog": {
        *SDKS,
        *PARSERS,
        CACHE,
        "gateway.edge",
        *(f"gateway.services.{name}" for name in SERVICES[1:]),
    },
    "presign": {*SDKS, *PARSERS, "gateway.edge", "gateway.services.catalog", "gateway.services.snapshot"},
    "vending": {*SDKS, *PARSERS, "gateway.edge", "gateway.services.catalog", "gateway.services.snapshot"},
    "snapshot": {*SDKS, "sqlglot", CACHE, "gateway.edge", "gateway.services.catalog"},
}


@pytest.mark.parametrize("name", UNUSED)
def test_a_process_of_one_service_imports_no_other(name, tmp_path):
    settings = settings_of(tmp_path) | split_settings(name)
    if name in ("edge", "catalog"):
        settings["storages"].append({"name": "cloud", "vendor": "aws", "prefix": "s3://bucket"})

    imported = imports_of_serve(tmp_path, settings)

    assert not UNUSED[name] & imported


def test_all_in_one_with_views_imports_everything_before_it_is_ready(tmp_path):
    settings = settings_of(tmp_path)
    view = {"name": "v", "from": "s.d.t", "columns": ["a"], "location": str(tmp_path / "lake/v")}
    settings["shares"][0]["schemas"][0]["views"] = [view]

    imported = imports_of_serve(tmp_path, settings)

    assert {*PARSERS, CACHE, "gateway.edge", *(f"gateway.services.{name}" for name in SERVICES)} <= imported


def test_help_imports_no_command():
    imported, output = imports_of(["--help"])

    assert "commands:" in output
    assert not {*SDKS, *PARSERS, "aiohttp", "grpc", "pydantic", "gateway.bootstrap"} & imported


def settings_of(directory: Path) -> Settings:
    lake = directory / "lake"
    tables = [{"name": "t", "location": str(lake / "t")}]
    return {
        "stateDir": str(directory / "own"),
        "port": 0,
        "metrics": {"listen": "127.0.0.1:0"},
        "shares": [{"name": "s", "schemas": [{"name": "d", "tables": tables}]}],
        "storages": [{"name": "lake", "vendor": "local", "prefix": str(lake)}],
        "recipients": [{"name": "r", "shares": ["s"], "tokens": [{"hash": f"sha256:{'0' * 64}"}]}],
    }


def split_settings(name: str) -> dict[str, Any]:
    addresses = {service: ["127.0.0.1:1"] for service in SERVICES}
    others = {"addresses": addresses} if name == "edge" else {"listen": "127.0.0.1:0"}
    return {
        "publicUrl": "http://127.0.0.1/delta-sharing",
        "services": {"run": [name], **others},
        "keys": {"current": split_keys()[name]},
    }


def imports_of_serve(directory: Path, settings: Settings) -> set[str]:
    """Return the modules that ``sluice serve`` imports before it serves."""
    file = directory / "server.yaml"
    write_yaml(file, settings)
    imported, output = imports_of(["serve", "--config", str(file)], until='"message":"serving ')
    assert '"message":"serving ' in output, output
    return imported


def imports_of(arguments: Sequence[str], until: str | None = None) -> tuple[set[str], str]:
    """Return the modules that a command imports, and its output, up to a line that contains ``until``."""
    command = [sys.executable, "-u", "-X", "importtime", "-m", "gateway", *arguments]
    imported, output = set(), ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("import time:"):
                imported.add(line.rpartition("|")[2].strip())
            else:
                output += line
                if until is not None and until in line:
                    break
        process.terminate()
    return imported, output
