"""The command that runs a container: a read-only tree, another user, no rights, and only what is mounted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from deploy.engine.image import Image, quote

# What every container has of the machine's devices.
_DEVICES: Final = ("full", "null", "random", "urandom", "zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How an image is to be run; what is left out is as the image says."""

    image: Image
    # Where the tree is laid; each container has a view of its own, so that all can use one folder.
    root: Path
    entrypoint: Sequence[str] | None = None
    command: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    # Folders in memory; all else cannot be written to.
    tmpfs: Sequence[str] = ()
    # What is laid where: of this machine, in the container.
    read_only: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[str, Path] = field(default_factory=dict)
    # A network namespace by its name; without one, the machine's own network.
    network: str = ""
    hostname: str = "container"

    def command_line(self) -> list[str]:
        """Return what to start; the process keeps its number, so that a signal reaches the container's."""
        script = "\n".join([*self._mounts(), f"exec chroot {quote(self.root)} {shlex.join(self._inside())}"])
        inside = ["unshare", "--mount", "--propagation", "private", "--uts", "--ipc", "sh", "-euc", script]
        return ["ip", "netns", "exec", self.network, *inside] if self.network else inside

    def health_command_line(self) -> list[str]:
        """Return what runs the image's health check in the same surroundings."""
        return replace(self, entrypoint=self.image.settings.healthcheck, command=()).command_line()

    def _mounts(self) -> Iterator[str]:
        root = quote(self.root)
        yield f"hostname {shlex.quote(self.hostname)}"
        yield from self.image.mounts(self.root)
        yield f"mount -t proc -o nosuid,nodev,noexec proc {root}/proc"
        yield f"mount -t tmpfs -o mode=0755,nosuid tmpfs {root}/dev"
        for name in _DEVICES:
            yield f"touch {root}/dev/{name}; mount --bind /dev/{name} {root}/dev/{name}"
        shared = f"{root}/dev/shm"  # noqa: S108 -- of the container
        yield f"mkdir {shared}; mount -t tmpfs -o mode=1777,nosuid,nodev,noexec,size=64m tmpfs {shared}"
        yield f"mount -t tmpfs -o mode=0755 tmpfs {root}/run"
        for place in self.tmpfs:
            # As runc mounts them: root's, with the mode of the folder below, if there is one.
            yield f"mode=$(stat -c %a {root}{place} 2>/dev/null || echo 1777); mkdir -p {root}{place}"
            yield f'mount -t tmpfs -o "mode=0$mode,nosuid,nodev,noexec" tmpfs {root}{place}'
        for place, source in self.writable.items():
            yield from self._bind(place, source)
        for place, source in self.read_only.items():
            yield from self._bind(place, source)
            yield f"mount -o remount,bind,ro {root}{place}"

    def _bind(self, place: str, source: Path) -> Iterator[str]:
        target = f"{quote(self.root)}{place}"
        # What is laid below a folder in memory has no place yet; for the rest see ``with_places``.
        made = f"mkdir -p {target}" if source.is_dir() else f"mkdir -p $(dirname {target}); touch {target}"
        yield f"[ -e {target} ] || {{ {made}; }}"
        yield f"mount --bind {quote(source)} {target}"

    def _inside(self) -> list[str]:
        settings = self.image.settings
        uid, _, gid = (self.user or settings.user).partition(":")
        env = {**settings.env, **self.env}
        program = [*(settings.entrypoint if self.entrypoint is None else self.entrypoint)]
        arguments = settings.cmd if self.command is None else self.command
        return [
            *("setpriv", "--reuid", uid, "--regid", gid or uid, "--clear-groups", "--no-new-privs"),
            *("--bounding-set", "-all", "--inh-caps", "-all"),
            *("env", "-i", "-C", settings.workdir, *(f"{name}={value}" for name, value in env.items())),
            *program,
            *arguments,
        ]
