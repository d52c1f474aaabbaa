"""Leaves out of an image what nobody runs there, and compiles the rest.

``slim.py PREFIX`` does so for an environment of packages, ``slim.py --interpreter`` for this Python itself.
Runs on a bare interpreter: the standard library only.
"""

from __future__ import annotations

import argparse
import compileall
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

# Needed to install, and never again.
INSTALLERS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources", "distutils-precedence.pth")
# Of Python itself: windows, an editor, a converter from Python 2, and what brings pip back.
UNUSED_MODULES = ("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo")
# botocore describes 400 services; these are called, or ask for an identity.
AWS_SERVICES = frozenset({"iam", "s3", "signin", "sso", "sso-oidc", "sts"})
# numpy.testing imports some of them, and others import that.
TESTS_NEEDED = frozenset({"numpy"})
PROGRAMS = (
    "python*",
    "sluice",
    "spark-submit",
    "spark-class",
    "find-spark-home",
    "find_spark_home.py",
    "load-spark-env.sh",
)


def main() -> int:
    arguments = _parse_arguments()
    if arguments.interpreter:
        slim_interpreter(Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("scripts")))
    else:
        slim_packages(arguments.prefix)
    return 0


def slim_packages(prefix: Path) -> None:
    """Take out of an environment what only installers, tests and debuggers read."""
    (packages,) = prefix.glob("lib/python3*/site-packages")
    _remove(_installed(packages, INSTALLERS))
    _remove(place for place in packages.rglob("tests") if _top(place, packages) not in TESTS_NEEDED)
    _remove(_unused_services(packages / "botocore" / "data"))
    _remove(file for file in (prefix / "bin").iterdir() if not _is_one_of(file, PROGRAMS))
    _strip(packages)
    _compile(packages)


def slim_interpreter(library: Path, scripts: Path) -> None:
    """Take out of an installation of Python what a server does not run."""
    _remove(library / name for name in UNUSED_MODULES)
    _remove(_installed(library / "site-packages", INSTALLERS))
    _remove(file for name in ("pip*", "idle*", "pydoc*", "2to3*", "wheel*") for file in scripts.glob(name))
    _compile(library)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Leave out of an image what nobody runs there.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("prefix", nargs="?", type=Path, help="an environment of packages")
    what.add_argument("--interpreter", action="store_true", help="the Python that runs this")
    return parser.parse_args()


def _installed(packages: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        yield packages / name
        yield from packages.glob(f"{name}-*.dist-info")


def _unused_services(data: Path) -> Iterator[Path]:
    if data.is_dir():
        yield from (place for place in data.iterdir() if place.is_dir() and place.name not in AWS_SERVICES)


def _is_one_of(file: Path, patterns: Iterable[str]) -> bool:
    return any(file.match(pattern) for pattern in patterns)


def _top(path: Path, packages: Path) -> str:
    return path.relative_to(packages).parts[0]


def _remove(places: Iterable[Path]) -> None:
    for place in list(places):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _strip(packages: Path) -> None:
    # A package with a folder *.libs was repaired by a tool whose layout strip is known to break.
    repaired = {place.name.removesuffix(".libs") for place in packages.glob("*.libs")}
    files = [
        file for file in packages.rglob("*.so") if _top(file, packages).removesuffix(".libs") not in repaired
    ]
    if files:
        subprocess.run(["strip", "--strip-unneeded", *map(str, files)], check=True)  # noqa: S603, S607


def _compile(place: Path) -> None:
    # Unchecked: the same bytes in every build, and no look at the sources' times at every start.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(str(place), quiet=1, workers=0, invalidation_mode=mode, force=True):
        # A package may carry files for another version of Python, which nobody imports.
        sys.stderr.write(f"slim: some files below {place} could not be compiled\n")


if __name__ == "__main__":
    sys.exit(main())
