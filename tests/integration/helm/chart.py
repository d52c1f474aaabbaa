"""The chart, as a user's Helm renders it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.installed import installed
from tests.repository import ROOT

CHART = ROOT / "helm" / "sluice"
EXAMPLES = sorted(path.stem for path in (CHART / "examples").glob("*.yaml"))
# Helm that was built by `go install` does not know which Kubernetes it is for.
NEWEST = "1.36.0"
# A program in Go collects garbage when its heap has grown by this percentage: memory for CPU time.
GO_ENV = {"GOGC": "400"}
# The parser in C, where there is one: the other takes ten times as long.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]
Values = Mapping[str, Any]


class Refused(Exception):
    """Helm would not render it, or do as it was told; the message is its own."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Every object of a release."""

    objects: tuple[Object, ...]

    def of(self, kind: str) -> dict[str, Object]:
        """Return the objects of a kind by name."""
        return {each["metadata"]["name"]: each for each in self.objects if each["kind"] == kind}

    @property
    def processes(self) -> dict[str, Object]:
        """Return the Deployments of the gateway's processes, by the process' name."""
        deployments = self.of("Deployment").values()
        found = {name: each for each in deployments if (name := container(each)["name"]) and _serves(each)}
        assert found, "no process is rendered"
        return found


def render(*files: str, values: Values | None = None, helm: str = "helm3", version: str = NEWEST) -> Rendered:
    """Render the chart with the examples of these names, and then these values."""
    output = _output(files, yaml.safe_dump(dict(values or {})), helm, version)
    return Rendered(tuple(each for each in yaml.load_all(output, _LOADER) if each))


@cache
def _output(files: tuple[str, ...], values: str, helm: str, version: str) -> str:
    given = [argument for name in files for argument in ("--values", str(example(name)))]
    command = ["template", "sluice", str(CHART), "--namespace", "sluice", "--kube-version", version]
    return run_helm(helm, *command, *given, "--values", "-", stdin=values)


def run_helm(helm: str, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run Helm and return what it printed; raise ``Refused`` with its complaint."""
    done = subprocess.run(
        [_program(helm), *arguments],
        input=stdin,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **GO_ENV, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout


@cache
def _program(helm: str) -> str:
    return str(installed(helm))


def example(name: str) -> Path:
    return CHART / "examples" / f"{name}.yaml"


def pod(workload: Object) -> Object:
    """Return the spec of the pods that a workload makes."""
    spec: Object = workload["spec"]
    if workload["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: Object = spec["template"]["spec"]
    return found


def container(workload: Object) -> Object:
    found: Object = pod(workload)["containers"][0]
    return found


def env_of(workload: Object) -> dict[str, str]:
    """Return the variables of a workload's container that have plain values."""
    return {each["name"]: each["value"] for each in container(workload)["env"] if "value" in each}


def _serves(deployment: Object) -> bool:
    arguments: list[str] = container(deployment).get("args", [])
    return arguments[:1] == ["serve"]
