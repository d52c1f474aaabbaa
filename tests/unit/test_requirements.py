from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cases import each_case
from tests.problems import assert_none, place
from tests.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNNING = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
DEVELOPING = PROJECT["project"]["optional-dependencies"]["dev"]
CLIENT = [line for line in (ROOT / "requirements-client.in").read_text().splitlines() if line[:1] != "#"]
FILES = {
    "requirements.txt": RUNNING,
    "requirements-pipeline.txt": [*RUNNING, *PROJECT["project"]["optional-dependencies"]["connect"]],
    "requirements-dev.txt": [*RUNNING, *DEVELOPING],
    "requirements-client.txt": CLIENT,
    "deploy/dev/requirements-uv.txt": ["uv"],
}


def pins(name):
    """Return the version and the hashes of each package in a requirements file."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in (ROOT / name).read_text().splitlines():
        if pin := re.match(r"([\w.-]+)==(\S+)", line):
            found[canonicalize_name(pin[1])] = (pin[2], hashes := [])
        elif hash_ := re.match(r"    --hash=sha256:([0-9a-f]{64})", line):
            hashes.append(hash_[1])
    return found


@each_case("name", FILES)
def test_every_package_has_hashes(name):
    assert pins(name)
    assert not [package for package, (_, hashes) in pins(name).items() if not hashes]


@each_case("name", FILES)
def test_requirements_file_pins_what_the_project_asks_for_within_its_bounds(name):
    pinned = pins(name)
    problems = []
    for wanted in FILES[name]:
        requirement = Requirement(wanted)
        if (package := canonicalize_name(requirement.name)) not in pinned:
            problems.append(f"{name}: no version of {package}; the project asks for {wanted}")
        elif not requirement.specifier.contains(version := pinned[package][0], prereleases=True):
            line = place(ROOT / name, rf"(?i)^{re.escape(requirement.name)}==")
            problems.append(f"{line}: {package}=={version}; the project asks for {wanted}")
    assert FILES[name]
    assert_none(problems)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-pipeline.txt"])
def test_tests_run_with_the_versions_that_users_get(name):
    developing = pins("requirements-dev.txt")
    assert {package: developing.get(package) for package in pins(name)} == pins(name)
