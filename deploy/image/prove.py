"""Builds the image without an engine and says what came of it: ``python -m deploy.image.prove``, as root."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from deploy.engine.build import Builder, BuildError
from deploy.engine.container import Container
from deploy.engine.dockerfile import parse
from deploy.engine.image import Image

FOLDER: Final = Path(__file__).parent
CHECKOUT: Final = FOLDER.parents[1]
BLOCK: Final = 512


def main() -> int:
    arguments = _parse_arguments()
    if os.geteuid() != 0:
        sys.stderr.write("prove: needs root, for mounts: sudo .venv/bin/python -m deploy.image.prove\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="sluice-image-") as place:
        try:
            image = build(Path(place), arguments.target, _say)
        except BuildError as exc:
            sys.stderr.write(f"prove: {exc}\n")
            return 1
        for line in sizes(image):
            _say(line)
        command = Container(image=image, root=Path(place, "mnt"), command=arguments.command or ["version"])
        return subprocess.run(command.command_line(), check=False).returncode  # noqa: S603


def build(place: Path, target: str, say: Callable[[str], None] = lambda _: None) -> Image:
    """Execute the Dockerfile up to a stage in a new folder."""
    dockerfile = parse((FOLDER / "Dockerfile").read_text())
    return Builder(dockerfile, CHECKOUT, place, _timed(say)).build(target)


def sizes(image: Image) -> Iterator[str]:
    """Say what each layer has put into the image, on disk."""
    sums = {layer.name: size_of(layer) for layer in reversed(image.layers)}
    for name, size in sums.items():
        if size:
            yield f"{size / 1e6:8.1f} MB  {name}"
    yield f"{sum(sums.values()) / 1e6:8.1f} MB  in all, without the base image"


def size_of(folder: Path) -> int:
    """Return what a folder takes on disk; a file with several names counts once."""
    found = {}
    for file in folder.rglob("*"):
        status = file.lstat()
        found[status.st_ino] = status.st_blocks * BLOCK if file.is_file() else 0
    return sum(found.values())


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Build the image without an engine, and run a command in it."
    )
    parser.add_argument("--target", default="gateway", help="gateway (the default) or pipeline")
    parser.add_argument("command", nargs="*", help="of sluice (default: version)")
    return parser.parse_args()


def _timed(say: Callable[[str], None]) -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: say(f"{time.monotonic() - began:6.1f} s  {text}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
