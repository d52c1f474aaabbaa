"""Networks of containers: a namespace for each, and one with the bridges that join them."""

from __future__ import annotations

import ipaddress
import itertools
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

# Where networks lie that say nothing of it.
_FREE: Final = ipaddress.ip_network("10.214.0.0/16")
_FIRST_HOST: Final = 20


@dataclass(frozen=True, slots=True)
class Attachment:
    """A container's place on a network."""

    network: str
    address: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Member:
    """A container's namespace, and where it is attached."""

    namespace: str
    attachments: tuple[Attachment, ...]


@dataclass(slots=True)
class Networks:
    """Networks that exist, and who is on them."""

    switch: str
    subnets: Mapping[str, ipaddress.IPv4Network]
    members: list[Member] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _hosts: dict[str, Iterator[int]] = field(default_factory=dict)

    def gateway(self, network: str) -> str:
        """Return the address at which names are asked for on a network."""
        return str(self.subnets[network][1])

    def join(self, wanted: Mapping[str, tuple[str, frozenset[str]]]) -> Member:
        """Make a namespace on networks, each by an address, or any, and the names it has there."""
        namespace = f"{self.switch}-{len(self.members)}"
        self._stack.enter_context(_namespace(namespace))
        attachments = tuple(
            self._attach(namespace, index, network, address or self._next(network), names)
            for index, (network, (address, names)) in enumerate(wanted.items())
        )
        member = Member(namespace, attachments)
        self.members.append(member)
        return member

    def known_to(self, address: str) -> dict[str, list[str]]:
        """Return the names that a container is answered, and their addresses: those of its own networks."""
        own = next((one for one in self.members if address in {a.address for a in one.attachments}), None)
        shared = {attachment.network for attachment in own.attachments} if own else set()
        found: dict[str, list[str]] = {}
        for attachment in itertools.chain.from_iterable(member.attachments for member in self.members):
            for name in attachment.names if attachment.network in shared else ():
                found.setdefault(name, []).append(attachment.address)
        return found

    def _next(self, network: str) -> str:
        return str(self.subnets[network][next(self._hosts.setdefault(network, itertools.count(_FIRST_HOST)))])

    def _attach(
        self, namespace: str, index: int, network: str, address: str, names: frozenset[str]
    ) -> Attachment:
        outer = f"p{len(self.members)}x{index}"
        length = self.subnets[network].prefixlen
        _ip(
            "-n",
            self.switch,
            "link",
            "add",
            outer,
            "type",
            "veth",
            "peer",
            "name",
            f"eth{index}",
            "netns",
            namespace,
        )
        _ip("-n", self.switch, "link", "set", outer, "master", _bridge(self.subnets, network), "up")
        _ip("-n", namespace, "addr", "add", f"{address}/{length}", "dev", f"eth{index}")
        _ip("-n", namespace, "link", "set", f"eth{index}", "up")
        return Attachment(network, address, names)


@contextmanager
def networks(wanted: Mapping[str, str | None]) -> Iterator[Networks]:
    """Make networks, each with a subnet or any, until the block is left."""
    free = _FREE.subnets(new_prefix=24)
    subnets = {name: ipaddress.IPv4Network(subnet or next(free)) for name, subnet in wanted.items()}
    switch = f"sluice-{secrets.token_hex(3)}"
    with ExitStack() as stack:
        stack.enter_context(_namespace(switch))
        for name, subnet in subnets.items():
            bridge = _bridge(subnets, name)
            _ip("-n", switch, "link", "add", bridge, "type", "bridge")
            _ip("-n", switch, "addr", "add", f"{subnet[1]}/{subnet.prefixlen}", "dev", bridge)
            _ip("-n", switch, "link", "set", bridge, "up")
        yield Networks(switch, subnets, _stack=stack)


@contextmanager
def _namespace(name: str) -> Iterator[None]:
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "delete", name)


def _bridge(subnets: Mapping[str, object], network: str) -> str:
    return f"br{list(subnets).index(network)}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)  # noqa: S603, S607
