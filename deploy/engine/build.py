"""Executes a Dockerfile, stage by stage, on the machine as its base."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from deploy.engine.base import CONTEXT, OTHER, base_layers
from deploy.engine.context import stage_context
from deploy.engine.dockerfile import Dockerfile, DockerfileError, Instruction, Stage, expand
from deploy.engine.image import Image, quote

# How this machine reaches its package registries is no part of an image, as a proxy is none for an engine.
_OF_THE_MACHINE: Final = re.compile(r"PIP_\w+|\w+_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE", re.IGNORECASE)
_LISTS: Final = {"ENTRYPOINT": "entrypoint", "CMD": "cmd"}

Say = Callable[[str], None]


class BuildError(Exception):
    pass


class Builder:
    """Builds the stages of a Dockerfile in a folder of its own, each once."""

    def __init__(self, dockerfile: Dockerfile, context: Path, place: Path, say: Say = lambda _: None) -> None:
        self._dockerfile = dockerfile
        self._place = place
        self._say = say
        self._root = place / "mnt"
        self._root.mkdir(parents=True)
        self._other = place / "from"
        self._other.mkdir()
        self._context = place / "context"
        stage_context(context, self._context)
        self._base = self._prepared(Image(base_layers(place / "base")))
        self._built: dict[str, Image] = {}

    def build(self, target: str) -> Image:
        """Return the image of a stage, with all that it is made from."""
        if target not in self._built:
            stage = self._dockerfile.stage(target)
            if stage is None:
                raise BuildError(f"the Dockerfile has no stage {target}")
            self._built[target] = _Stage(self, stage).build()
        return self._built[target]

    def _prepared(self, bare: Image) -> Image:
        # A Python with a shared library finds it at /usr/local/lib before the system's, as in its own image.
        layer = bare.new_layer(self._place / "base" / "ldconfig")
        self.execute(
            bare, layer, [], ["ldconfig"], f"FROM this machine, for {self._dockerfile.stages[0].base}"
        )
        return replace(bare, layers=(layer,))

    def start_of(self, stage: Stage) -> Image:
        return self.build(stage.base) if self._dockerfile.stage(stage.base) else self._base

    def default_of(self, name: str) -> str:
        return self._dockerfile.arguments.get(name, "")

    def new_layer(self, image: Image, number: int, stage: Stage) -> Path:
        return image.new_layer(self._place / "layers" / f"{stage.name}-{number:02}")

    def execute(self, image: Image, layer: Path, mounts: list[str], command: list[str], what: str) -> None:
        """Run a command with the image's tree as its root, which is written to a layer."""
        self._say(what)
        root = quote(self._root)
        script = [
            *image.mounts(self._root, layer),
            f"mount -t proc proc {root}/proc",
            f"mount --rbind /dev {root}/dev",
            *(line.format(root=root) for line in mounts),
            f"exec chroot {root} {shlex.join(command)}",
        ]
        done = subprocess.run(  # noqa: S603 -- what the Dockerfile says
            ["unshare", "--mount", "--propagation", "private", "sh", "-euc", "\n".join(script)],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"{what} ended with {done.returncode}:\n{done.stdout[-3000:]}")

    def source_of(self, instruction: Instruction) -> tuple[list[str], str]:
        """Return the mounts that a COPY needs, and where what it copies is then."""
        stage = instruction.flag("from")
        if stage is None:
            return [f"mount --bind {quote(self._context)} {{root}}/{CONTEXT}"], CONTEXT
        other = self.build(stage)
        return [*other.mounts(self._other), f"mount --rbind {quote(self._other)} {{root}}/{OTHER}"], OTHER

    def cache(self, target: str) -> Path:
        """Return the folder that a cache mount has on this machine, from build to build."""
        own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        # pip keeps its own below its home already, which is what a cache mount is for.
        place = own / "pip" if target.endswith("/pip") else own / "sluice" / "build" / target.strip("/.")
        place.mkdir(parents=True, exist_ok=True)
        return place


class _Stage:
    def __init__(self, builder: Builder, stage: Stage) -> None:
        self._builder = builder
        self._stage = stage
        self._image = builder.start_of(stage)
        self._arguments: dict[str, str] = {}
        self._number = 0

    def build(self) -> Image:
        for instruction in self._stage.instructions:
            self._take(instruction)
        return self._image

    def _take(self, instruction: Instruction) -> None:
        match instruction.keyword:
            case "RUN":
                self._run(instruction)
            case "COPY":
                self._copy(instruction)
            case "ARG":
                for name, default in instruction.pairs().items():
                    self._arguments[name] = default or self._builder.default_of(name)
            case "WORKDIR":
                self._layer([], ["mkdir", "-p", instruction.text], f"WORKDIR {instruction.text}")
                self._set(workdir=instruction.text)
            case _:
                self._set(**dict(self._settings(instruction)))

    def _settings(self, instruction: Instruction) -> Iterator[tuple[str, Any]]:
        settings = self._image.settings
        expanded = replace(instruction, text=expand(instruction.text, self._variables))
        match instruction.keyword:
            case "ENV":
                yield "env", settings.env | expanded.pairs()
            case "LABEL":
                yield "labels", settings.labels | expanded.pairs()
            case "USER":
                yield "user", expanded.text
            case "STOPSIGNAL":
                yield "stop_signal", expanded.text
            case "HEALTHCHECK":
                yield "healthcheck", tuple(replace(expanded, text=expanded.text.removeprefix("CMD ")).words())
            case "ENTRYPOINT" | "CMD":
                yield _LISTS[instruction.keyword], tuple(expanded.words())
            case "EXPOSE":
                return
            case keyword:
                raise DockerfileError(f"line {instruction.line}: {keyword} is not understood here")

    def _run(self, instruction: Instruction) -> None:
        mounts = [self._cache_mount(value) for name, value in instruction.flags if name == "mount"]
        settings = self._image.settings
        passed = {name: value for name, value in os.environ.items() if _OF_THE_MACHINE.fullmatch(name)}
        env = {"HOME": "/root", **passed, **settings.env, **self._arguments}
        script = f"cd {shlex.quote(settings.workdir)} && {instruction.text}"
        words = ["env", "-i", *(f"{name}={value}" for name, value in env.items()), "sh", "-c", script]
        self._layer(mounts, words, f"RUN {instruction.text}")

    def _copy(self, instruction: Instruction) -> None:
        mounts, place = self._builder.source_of(instruction)
        *sources, target = expand(instruction.text, self._variables).split()
        workdir, owner = self._image.settings.workdir, instruction.flag("chown") or "0:0"
        script = f"""
            umask 022; cd {shlex.quote(workdir)}; target={shlex.quote(target)}
            case "$target" in */|.) mkdir -p "$target" ;; *) mkdir -p "$(dirname "$target")" ;; esac
            for source in {shlex.join(sources)}; do
                from=/{place}/${{source#/}}
                if [ -d "$from" ]; then
                    mkdir -p "$target"
                    cp -dR --preserve=mode,timestamps "$from/." "$target"
                    chown -hR {owner} "$target"
                else
                    cp -d --preserve=mode,timestamps "$from" "$target"
                    if [ -d "$target" ]; then copied=$target/${{source##*/}}; else copied=$target; fi
                    chown -h {owner} "$copied"
                fi
            done"""
        self._layer(mounts, ["sh", "-euc", script], f"COPY {instruction.text}")

    def _cache_mount(self, value: str) -> str:
        options = dict(part.partition("=")[::2] for part in value.split(","))
        if options.get("type") != "cache":
            raise BuildError(f"{self._stage.name}: a mount of {options.get('type')} is not understood")
        target = options["target"]
        return (
            f"mkdir -p {{root}}{target}; mount --bind {quote(self._builder.cache(target))} {{root}}{target}"
        )

    def _layer(self, mounts: list[str], command: list[str], what: str) -> None:
        layer = self._builder.new_layer(self._image, self._number, self._stage)
        self._number += 1
        self._builder.execute(self._image, layer, mounts, command, what)
        self._image = replace(self._image, layers=(layer, *self._image.layers))

    def _set(self, **settings: Any) -> None:
        self._image = replace(self._image, settings=replace(self._image.settings, **settings))

    @property
    def _variables(self) -> Mapping[str, str]:
        return {**self._arguments, **self._image.settings.env}
