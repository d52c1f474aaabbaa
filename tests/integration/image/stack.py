"""Runs a compose file's containers without an engine, as its own words say, each in namespaces of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from deploy.engine.container import Container
from deploy.engine.image import Image
from deploy.engine.network import Networks, networks
from tests.repository import ROOT
from tests.stores.process import ServerProcess, running
from tests.waiting import eventually

_HEALTHY_SECONDS = 300
Document = dict[str, Any]


@dataclass(frozen=True)
class Foreign:
    """An image that is not ours: programs of this machine in place of its own, and how it starts them."""

    programs: Mapping[str, Path]
    entrypoint: Sequence[str] = ()


@dataclass
class Running:
    """One container of a service."""

    service: str
    container: Container
    process: ServerProcess
    addresses: dict[str, str]

    def check(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the container's surroundings, as its health check is."""
        line = replace(self.container, entrypoint=command, command=()).command_line()
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)

    def stop(self) -> int:
        self.process.process.send_signal(signal.SIGTERM)
        return self.process.process.wait(120)


@dataclass
class Stack:
    """What runs of a project, and a namespace of a user's with its published ports on loopback."""

    directory: Path
    networks: Networks
    services: dict[str, list[Running]] = field(default_factory=dict)
    outside: str = ""

    def run_outside(self, command: Sequence[str | Path], **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a user of the machine would: only published ports are reached, on loopback."""
        hosts = self.directory / "hosts"
        hosts.write_text("127.0.0.1 localhost store.localhost\n")
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        line = ["ip", "netns", "exec", self.outside, "unshare", "--mount", "sh", "-euc", script, str(hosts)]
        line += map(str, command)
        own = {**os.environ, **env}
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=300, env=own)

    def logs(self) -> str:
        every = [running for group in self.services.values() for running in group]
        return "\n".join(f"== {one.service}\n{one.process.log()[-2000:]}" for one in every)


class Starter:
    """Starts the services of a project as they depend on each other, all that are ready to start at once."""

    def __init__(self, project: Document, own: Image, base: Image, directory: Path) -> None:
        self._project = project
        self._own = own
        self._base = base
        self._directory = directory
        self._root = directory / "mnt"
        self._root.mkdir(parents=True)

    @contextmanager
    def running(self, foreign: Mapping[str, Foreign]) -> Iterator[Stack]:
        """Run every service whose image is ours, or whose programs are given for the name of its image."""
        wanted = {
            name: (own.get("ipam") or {}).get("config", [{}])[0].get("subnet")
            for name, own in self._project["networks"].items()
        }
        with ExitStack() as stack, networks(wanted) as made:
            result = Stack(self._directory, made)
            stack.enter_context(self._name_server(made))
            for names in self._levels():
                images = {name: self._image(self._project["services"][name], foreign) for name in names}
                started = [
                    running
                    for name, image in images.items()
                    if image is not None
                    for running in self._start(stack, result, name, image)
                ]
                for running in started:
                    self._wait(running)
            self._publish(stack, result)
            yield result

    def _levels(self) -> Iterator[tuple[str, ...]]:
        """Yield the services that depend on those before them alone."""
        services = self._project["services"]
        sorter = TopologicalSorter({name: own.get("depends_on", {}) for name, own in services.items()})
        sorter.prepare()
        while sorter.is_active():
            names = sorter.get_ready()
            yield names
            sorter.done(*names)

    def _image(self, service: Document, foreign: Mapping[str, Foreign]) -> Image | None:
        if "build" in service:
            return self._own
        repository = service["image"].partition(":")[0]
        if repository not in foreign:
            return None
        layer = self._directory / repository.replace("/", "-")
        if not layer.exists():
            self._base.new_layer(layer)
            for name, program in foreign[repository].programs.items():
                target = layer / "usr-local" / "bin" / name
                target.parent.mkdir(exist_ok=True)
                shutil.copy2(program, target)
        settings = replace(self._base.settings, entrypoint=tuple(foreign[repository].entrypoint))
        return replace(self._base, layers=(layer, *self._base.layers), settings=settings)

    def _start(self, stack: ExitStack, result: Stack, name: str, image: Image) -> Iterator[Running]:
        """Start every replica of a service."""
        service = self._project["services"][name]
        for number in range(int((service.get("deploy") or {}).get("replicas", 1))):
            container = self._container(f"{name}-{number}", name, service, image, result.networks)
            member = result.networks.members[-1]
            log_file = self._directory / f"{name}-{number}.log"
            process = stack.enter_context(
                running(container.command_line(), log_file=log_file, ready=lambda: True)
            )
            addresses = {attachment.network: attachment.address for attachment in member.attachments}
            started = Running(name, container, process, addresses)
            result.services.setdefault(name, []).append(started)
            yield started

    def _ends(self, name: str) -> bool:
        waits = [own.get("depends_on", {}).get(name, {}) for own in self._project["services"].values()]
        return any(wait.get("condition") == "service_completed_successfully" for wait in waits)

    def _container(
        self, own_name: str, name: str, service: Document, image: Image, made: Networks
    ) -> Container:
        member = made.join(
            {
                network: (
                    (options or {}).get("ipv4_address", ""),
                    frozenset({name, *((options or {}).get("aliases") or ())}),
                )
                for network, options in service["networks"].items()
            }
        )
        self._write_names(made)
        read_only, writable = self._mounts(own_name, service, made, member.attachments[0].network)
        layer = self._directory / "places" / own_name
        places = {
            place: source
            for place, source in {**read_only, **writable}.items()
            if not place.startswith("/run/")
        }
        return Container(
            image=image.with_places(layer, places),
            root=self._root,
            entrypoint=service.get("entrypoint"),
            command=service.get("command"),
            env={key: value or "" for key, value in (service.get("environment") or {}).items()},
            user=service["user"],
            tmpfs=service.get("tmpfs") or (),
            read_only=read_only,
            writable=writable,
            network=member.namespace,
            hostname=service.get("hostname") or own_name,
        )

    def _mounts(
        self, name: str, service: Document, made: Networks, network: str
    ) -> tuple[dict[str, Path], dict[str, Path]]:
        place = self._directory / "etc" / name
        place.mkdir(parents=True)
        (place / "resolv.conf").write_text(f"nameserver {made.gateway(network)}\n")
        (place / "hosts").write_text("127.0.0.1 localhost\n")
        read_only = {f"/etc/{file}": place / file for file in ("resolv.conf", "hosts")}
        writable: dict[str, Path] = {}
        for volume in service.get("volumes") or ():
            (read_only if volume.get("read_only") else writable)[volume["target"]] = Path(volume["source"])
        for secret in service.get("secrets") or ():
            file = Path(self._project["secrets"][secret["source"]]["file"])
            read_only[f"/run/secrets/{secret['target']}"] = file
        return read_only, writable

    def _write_names(self, made: Networks) -> None:
        every = [attachment.address for member in made.members for attachment in member.attachments]
        fresh = self._directory / "names.new"
        fresh.write_text(json.dumps({address: made.known_to(address) for address in every}))
        fresh.replace(self._directory / "names.json")

    @contextmanager
    def _name_server(self, made: Networks) -> Iterator[None]:
        (self._directory / "names.json").write_text("{}")
        addresses = [made.gateway(name) for name in made.subnets]
        command = ["ip", "netns", "exec", made.switch, sys.executable, "-m", "deploy.engine.names"]
        with _listening(
            [*command, self._directory / "names.json", *addresses], self._directory / "names.log"
        ):
            yield

    def _wait(self, started: Running) -> None:
        """Wait until a container is healthy, or until it has ended if that is what others wait for."""
        if self._ends(started.service):
            status = started.process.process.wait(_HEALTHY_SECONDS)
            assert status == 0, started.process.log()[-4000:]
            return
        service = self._project["services"][started.service]
        test = (service.get("healthcheck") or {}).get("test")
        # An image that is not ours may bring the program of its check, which this machine lacks.
        if not test or test[0] != "CMD" or not _has(test[1], started.container.image):
            return
        said: list[str] = []

        def is_healthy() -> bool:
            assert started.process.is_running(), state()
            # Cheaper than a check, which starts a container: what has not logged this is not healthy.
            if "build" in service and '"serving ' not in started.process.log():
                return False
            checked = started.check(test[1:])
            said[:] = [checked.stdout, checked.stderr]
            return not checked.returncode

        def state() -> str:
            return f"{started.service} is healthy: {said}\n{started.process.log()[-4000:]}"

        eventually(is_healthy, state, seconds=_HEALTHY_SECONDS, pause=0.3)

    def _publish(self, stack: ExitStack, result: Stack) -> None:
        """Make a namespace whose loopback has the published ports, as the machine of an engine has."""
        leading_out = [name for name, own in self._project["networks"].items() if not own.get("internal")]
        result.outside = result.networks.join({name: ("", frozenset()) for name in leading_out}).namespace
        for group in result.services.values():
            service = self._project["services"][group[0].service]
            for port in service.get("ports") or ():
                network = next(name for name in leading_out if name in group[0].addresses)
                to = f"{group[0].addresses[network]}:{port['target']}"
                here = f"{port['host_ip']}:{port['published']}"
                command = [
                    "ip",
                    "netns",
                    "exec",
                    result.outside,
                    sys.executable,
                    "-m",
                    "tests.integration.image.port",
                ]
                log_file = self._directory / f"port-{port['published']}.log"
                stack.enter_context(_listening([*command, here, to], log_file))


def _has(program: str, image: Image) -> bool:
    places = [layer / "usr-local" / "bin" for layer in image.layers]
    places += [layer / "root" / "opt" / "sluice" / "bin" for layer in image.layers]
    return any((place / program).exists() for place in places) or shutil.which(program) is not None


def _listening(command: Sequence[str | Path], log_file: Path) -> AbstractContextManager[ServerProcess]:
    return running(
        command,
        log_file=log_file,
        ready=lambda: "listening" in log_file.read_text(),
        env={"PYTHONPATH": str(ROOT)},
    )
