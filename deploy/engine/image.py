"""An image: layers of folders, and what its Dockerfile says of how it is run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

# Of Debian's images, and of those that are made from them.
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is not a file."""

    env: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    labels: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    healthcheck: tuple[str, ...] = ()
    stop_signal: str = "SIGTERM"


@dataclass(frozen=True, slots=True)
class Image:
    """Layers, the newest first; each is a folder with a part of the tree for each of the base's."""

    base: Mapping[str, Path]
    layers: tuple[Path, ...] = ()
    settings: Settings = field(default_factory=Settings)

    def mounts(self, root: Path, upper: Path | None = None) -> Iterator[str]:
        """Yield shell commands that lay the tree at a root; it can be written to only with an ``upper``."""
        for part in sorted(self.base):
            lower = [*(layer / name_of(part) for layer in self.layers), self.base[part]]
            options = f"lowerdir={':'.join(map(str, lower))}"
            if upper is not None:
                written = upper / name_of(part)
                options += f",upperdir={written},workdir={written.with_name(written.name + '.work')}"
            elif len(lower) == 1:
                yield f"mount --bind {quote(lower[0])} {quote(root / part)}"
                yield f"mount -o remount,bind,ro {quote(root / part)}"
                continue
            yield f"mount -t overlay overlay -o {shlex.quote(options)} {quote(root / part)}"

    def with_places(self, layer: Path, places: Mapping[str, Path]) -> Image:
        """Return an image in which there is something at each place for another to be laid over."""
        self.new_layer(layer)
        for place, source in places.items():
            part = max((part for part in self.base if Path(place[1:]).is_relative_to(part)), key=len)
            target = layer / name_of(part) / Path(place[1:]).relative_to(part)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                target.mkdir(exist_ok=True)
            else:
                target.touch()
        return replace(self, layers=(layer, *self.layers))

    def new_layer(self, place: Path) -> Path:
        """Make the folders that a layer is written to."""
        for part in self.base:
            for name in (name_of(part), name_of(part) + ".work"):
                (place / name).mkdir(parents=True)
        return place


def name_of(part: str) -> str:
    """Return the folder of a part of the tree within a layer."""
    return part.replace("/", "-") or "root"


def quote(path: Path) -> str:
    return shlex.quote(str(path))
