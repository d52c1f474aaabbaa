"""The machine as a base image: its own system, and at /usr/local the Python that runs this."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# What stays outside: an official image of Python has no tests and no archives, and of packages pip alone.
_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "test", "tests", "site-packages", "config-3*", "*.a")
_FOLDERS: Final = (
    "build",
    "dev",
    "etc",
    "home",
    "opt",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
)
_LINKS: Final = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
# Where other files are laid while an instruction is run: the context, and another stage.
CONTEXT: Final = ".context"
OTHER: Final = ".from"


def base_layers(place: Path) -> Mapping[str, Path]:
    """Make what has to be made of a base, and return the folder for each part of its tree."""
    skeleton = place / "skeleton"
    for name in (*_FOLDERS, "usr/local", CONTEXT, OTHER):
        (skeleton / name).mkdir(parents=True)
    (skeleton / "tmp").chmod(0o1777)
    for name in _LINKS:
        if (link := Path("/", name)).is_symlink():
            (skeleton / name).symlink_to(link.readlink())
    return {
        "": skeleton,
        "usr": Path("/usr"),
        "usr/local": _python(place / "python"),
        "etc": Path("/etc"),
        "var": Path("/var"),
    }


def _python(place: Path) -> Path:
    """Lay out this Python as an official image has it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = Path(sys.base_prefix)
    (place / "bin").mkdir(parents=True)
    shutil.copy2(prefix / "bin" / version, place / "bin")
    for name in ("python3", "python"):
        (place / "bin" / name).symlink_to(version)
    library = Path("lib", version)
    shutil.copytree(prefix / library, place / library, ignore=_LEFT_OUT, copy_function=_link, symlinks=True)
    for package in ("pip", "pip-*.dist-info"):
        for found in (prefix / library / "site-packages").glob(package):
            target = place / library / "site-packages" / found.name
            shutil.copytree(found, target, ignore=shutil.ignore_patterns("__pycache__"), copy_function=_link)
    for shared in (prefix / "lib").glob("libpython*.so*"):
        shutil.copy2(shared, place / "lib", follow_symlinks=False)
    return place


def _link(source: str, target: str) -> None:
    """Take a file without its bytes, where that can be: nothing is ever written through it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
