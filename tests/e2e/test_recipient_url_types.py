"""Whatever types and partitions a table has, a recipient reads by URLs what deltalake reads where it lies."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from tests.components import ALL_IN_ONE, DELTALAKE, DUCKDB
from tests.deployments import all_in_one
from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_lake import SOURCE, recipient_environment
from tests.e2e.recipient_url_plan import NAMES
from tests.repository import ROOT

pytestmark = [pytest.mark.component(ALL_IN_ONE), pytest.mark.component(DELTALAKE)]

SHARE, SCHEMA = "deltalake", "tables"


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, Any]:
    require_environment()
    directory, tables = tmp_path_factory.mktemp("deployment"), tmp_path_factory.mktemp("tables")
    _run("write", tables)
    token = secrets.token_urlsafe(32)
    with all_in_one(directory, _settings(tables, token)) as deployment:
        profile = directory / "reader.share"
        content = {"shareCredentialsVersion": 1, "endpoint": deployment.base_url, "bearerToken": token}
        profile.write_text(json.dumps(content))
        read: dict[str, Any] = _run("read", tables, f"{profile}#{SHARE}.{SCHEMA}")
        return read


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "engine", ["arrow", "polars", pytest.param("duckdb", marks=pytest.mark.component(DUCKDB))]
)
def test_an_engine_reads_by_urls_what_deltalake_reads(found, name, engine):
    assert found[name][engine] == found[name]["deltalake"]


def _run(*arguments: object) -> Any:
    command: list[str | Path] = [PYTHON, "-m", "tests.e2e.read_recipient_tables", *map(str, arguments)]
    # The tests' own modules are found here, too.
    env = recipient_environment(PYTHONPATH=f"{SOURCE}{os.pathsep}{ROOT}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _settings(directory: Path, token: str) -> dict[str, Any]:
    tables = [{"name": name, "location": str(directory / name)} for name in NAMES]
    return {
        "version": 1,
        "shares": [{"name": SHARE, "schemas": [{"name": SCHEMA, "tables": tables}]}],
        "storages": [{"name": "deltalake", "prefix": str(directory), "vendor": "local"}],
        "recipients": [{"name": "reader", "tokens": [{"hash": hash_of(token)}], "shares": [SHARE]}],
        "limits": {"rate": {"requestsPerSecond": 100_000, "burst": 100_000}},
    }
