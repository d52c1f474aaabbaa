"""The image, built once for a run without an engine, and the compose file's containers of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from deploy.engine.image import Image, Settings
from deploy.image.prove import build
from tests.installed import installed
from tests.integration.image.stack import Foreign, Stack, Starter
from tests.repository import ROOT
from tests.stores.redis import valkey_program


@pytest.fixture(scope="package")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.geteuid() != 0:
        pytest.fail("building an image without an engine takes mounts, and those root", pytrace=False)
    installed("iproute2")
    return tmp_path_factory.mktemp("i")


@pytest.fixture(scope="package")
def image(image_folder: Path) -> Image:
    """The image of the gateway, by its Dockerfile."""
    return build(image_folder / "b", "gateway")


@pytest.fixture(scope="package")
def machine(image: Image) -> Image:
    """The machine alone, which stands in for the bases of other images."""
    return replace(image, layers=image.layers[-1:], settings=Settings())


@pytest.fixture(scope="package")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder ``deploy`` in which the compose file's keys and sample were made."""
    place = tmp_path_factory.mktemp("deploy") / "deploy"
    shutil.copytree(ROOT / "deploy", place, ignore=shutil.ignore_patterns("generated", ".env", "__pycache__"))
    command = [sys.executable, "-m", "deploy.compose.prepare"]
    env = {**os.environ, "PYTHONPATH": f"{place.parent}:{ROOT}"}
    subprocess.run(command, cwd=place.parent, env=env, check=True, stdout=subprocess.PIPE)
    return place


@pytest.fixture(scope="package")
def project(prepared: Path) -> dict[str, Any]:
    """The compose file as Docker Compose's own library understands it."""
    command = [str(installed("compose")), "compose.yaml"]
    done = subprocess.run(
        command, cwd=prepared / "compose", capture_output=True, text=True, check=False, env=_bare()
    )
    assert done.returncode == 0, done.stderr
    resolved: dict[str, Any] = json.loads(done.stdout)
    return resolved


# Ended with its module: a dozen processes.
@pytest.fixture(scope="module")
def stack(project: dict[str, Any], image: Image, machine: Image, image_folder: Path) -> Iterator[Stack]:
    """Everything that the compose file starts but Grafana, which no registry of packages has."""
    foreign = {
        "chrislusf/seaweedfs": Foreign({"weed": Path(sys.prefix, "bin", "weed")}),
        "envoyproxy/envoy": Foreign({"envoy": _envoy()}),
        "prom/prometheus": Foreign({}, [str(installed("prometheus"))]),
        "valkey/valkey": Foreign({"valkey-server": valkey_program()}),
    }
    with Starter(project, image, machine, image_folder / "s").running(foreign) as running:
        yield running


def _envoy() -> Path:
    spec = find_spec("envoy")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], "_bin", "envoy")


def _bare() -> dict[str, str]:
    # What the file needs it finds in .env, as it does for a user.
    return {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
