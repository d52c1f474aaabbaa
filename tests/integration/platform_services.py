"""A split deployment with platform services, and the examples that the documentation gives them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.deployments import Deployment, Settings, split
from tests.installed import installed
from tests.repository import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "platform"
GO_MODULE = "example.com/platform"

KEY = Ed25519PrivateKey.generate()
PUBLIC_PEM = (
    KEY.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


@dataclass
class Platform:
    """A gateway with platform services, and a place for what its callers need."""

    deployment: Deployment
    directory: Path

    def address(self, service: str) -> str:
        settings = yaml.safe_load(self.deployment.processes[service].config_file.read_text())
        return str(settings["services"]["listen"])

    def arguments(self, caller: str, *services: str) -> list[str]:
        """Return what an example's command line says of where the services are and who asks."""
        tls = self.deployment.certificate(caller)
        return [
            *(f"--{service}={self.address(service)}" for service in services),
            f"--certificate={tls.certificate}",
            f"--key={tls.key}",
            f"--ca={tls.ca}",
        ]

    @property
    def signing_key(self) -> Path:
        """Return the file of the key that the service `reports` signs its JWTs with."""
        file = self.directory / "reports.pem"
        file.write_bytes(
            KEY.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return file


@contextmanager
def running_platform(directory: Path, settings: Settings) -> Iterator[Platform]:
    with split(directory / "gateway", settings) as deployment:
        yield Platform(deployment, directory)


def stubs(directory: Path) -> Path:
    """Generate the Python code of the protos as a platform service would, outside of our own package."""
    protos = sorted((ROOT / "proto").rglob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}"]
    outputs = [f"--{kind}_out={directory}" for kind in ("python", "grpc_python")]
    subprocess.run([*command, *outputs, *map(str, protos)], check=True)
    # A regular package: of the two called gateway, this one is found first.
    for package in (directory / "gateway", directory / "gateway" / "v1"):
        (package / "__init__.py").touch()
    return directory


def copy_example(name: str, directory: Path) -> Path:
    """Return a copy of an example, beside a copy of the service config that it reads."""
    place = directory / "platform"
    shutil.copytree(EXAMPLES / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(EXAMPLES / "service-config.json", place)
    return place / name


def build_go_example(directory: Path) -> Path:
    """Generate the Go code of the protos into a copy of the example, build it, and return the program."""
    example = copy_example("go", directory)
    plugins = [installed(name) for name in ("protoc-gen-go", "protoc-gen-go-grpc")]
    protos = sorted((ROOT / "proto").rglob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}"]
    for plugin in plugins:
        kind = plugin.name.removeprefix("protoc-gen-")
        command += [f"--plugin={plugin}", f"--{kind}_out={example}", f"--{kind}_opt=module={GO_MODULE}"]
        names = [str(proto.relative_to(ROOT / "proto")) for proto in protos]
        command += [f"--{kind}_opt=M{name}={GO_MODULE}/gatewayv1" for name in names]
    subprocess.run([*command, *map(str, protos)], check=True)
    program = directory / "platform-service"
    subprocess.run(["go", "build", "-mod=readonly", "-o", str(program), "."], cwd=example, check=True)
    return program
