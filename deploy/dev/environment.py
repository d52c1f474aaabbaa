"""Creates a virtual environment from a hash-pinned requirements file, and reports progress.

Runs on a bare interpreter: the standard library only. An older Python can parse it and gets an error that
names the version needed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

_UV = Path(__file__).with_name("requirements-uv.txt")
_PROGRESS_SECONDS = 15


class SetupError(Exception):
    pass


class WrongHashError(SetupError):
    """Another installer must not be tried."""


def main() -> int:
    arguments = _parse_arguments()
    steps = 3 if arguments.project else 2

    def say(step: int, text: str) -> None:
        sys.stdout.write(f"setting up: {step} of {steps} {text}\n")
        sys.stdout.flush()

    try:
        version = ".".join(map(str, _supported_version()))
        say(1, f"preparing {arguments.directory} with Python {version}")
        python = _create(arguments.directory)
        _install(python, arguments.requirements, lambda text: say(2, text))
        if arguments.project:
            say(3, "installing the project itself")
            _install_project(python)
    except SetupError as exc:
        sys.stderr.write(f"setting up: {exc}\n")
        return 1
    for stamp in arguments.stamp:
        stamp.touch()
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make a virtual environment from pinned requirements.")
    parser.add_argument("directory", type=Path, help="where it is made, or brought up to date")
    parser.add_argument("requirements", type=Path, help="what to install, with hashes")
    parser.add_argument("--project", action="store_true", help="install the project in this directory too")
    parser.add_argument("--stamp", type=Path, action="append", default=[], help="a file to touch when done")
    return parser.parse_args()


def _supported_version() -> tuple[int, int, int]:
    version = sys.version_info[:3]
    if version < (3, 11):
        found = ".".join(map(str, version))
        raise SetupError(f"needs Python 3.11 or newer, {sys.executable} is {found}; name another: PYTHON=...")
    return version


def _create(directory: Path) -> Path:
    if directory.is_symlink():
        # The project would be installed from here into an environment of another checkout.
        raise SetupError(f"{directory} is a link: remove it, an environment belongs to one checkout")
    python = directory / "bin" / "python"
    if _works(python):
        return python
    try:
        # An environment whose interpreter was upgraded or moved away is made anew.
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(directory)
    except subprocess.CalledProcessError:
        missing = "on Debian and Ubuntu the package python3-venv is missing"
        raise SetupError(f"{sys.executable} cannot make environments: {missing}") from None
    return python


def _works(python: Path) -> bool:
    check = [str(python), "-c", "import pip, sys; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(check, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _install(python: Path, requirements: Path, say: Callable[[str], None]) -> None:
    """Install pinned packages with uv, or with pip if uv fails."""
    pins = sum("==" in line for line in requirements.read_text().splitlines())
    say(f"installing {pins} packages")
    try:
        _install_with_uv(python, requirements, say)
    except WrongHashError:
        raise
    except SetupError as exc:
        # An index or a proxy may be configured for pip alone.
        say(f"installing packages with pip, because {exc}")
        _install_with_pip(python, requirements, pins, say)


def _install_with_uv(python: Path, requirements: Path, say: Callable[[str], None]) -> None:
    # Seconds where pip takes minutes: uv fetches in parallel, and caches what it has unpacked.
    for _ in _pip(python, "install", "--require-hashes", "--only-binary", ":all:", "-r", str(_UV)):
        pass
    # Python compiles the few modules that are imported; compiling all of them takes most of the time.
    # Copied: with a link, an edit of a module in this environment would change uv's cache, whose hashes were
    # checked.
    options = ["--quiet", "--no-deps", "--require-hashes", "--link-mode", "copy"]
    # Without configuration: uv reads a file in any parent directory, which others may be able to write.
    command = [str(python), "-m", "uv", "--no-config", "pip", "install", "--python", str(python), *options]
    began = time.monotonic()
    with subprocess.Popen([*command, "-r", str(requirements)], stderr=subprocess.PIPE, text=True) as uv:
        while True:
            try:
                _, errors = uv.communicate(timeout=_PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                say(f"installing packages: {time.monotonic() - began:.0f} s, a minute or two the first time")
    if "hash mismatch" in errors.lower():
        raise WrongHashError(f"a package is not the one that {requirements} names:\n{errors}")
    if uv.returncode:
        raise SetupError(f"uv failed:\n{errors}")


def _install_with_pip(python: Path, requirements: Path, pins: int, say: Callable[[str], None]) -> None:
    fetched = 0
    # The file is whole; without --no-deps pip refuses what a package wants only on some other platform.
    for line in _pip(python, "install", "--no-deps", "--require-hashes", "-r", str(requirements)):
        if line.startswith("Collecting "):
            fetched += 1
            if fetched % 10 == 0:
                say(f"installing packages: {fetched} of {pins} fetched")
        elif line.startswith("Installing collected"):
            say("installing packages: unpacking, this may take a minute")


def _install_project(python: Path) -> None:
    for _ in _pip(python, "install", "--no-deps", "--no-build-isolation", "-e", "."):
        pass


def _pip(python: Path, command: str, *arguments: str) -> Iterator[str]:
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    line = [str(python), "-m", "pip", command, *options, *arguments]
    output = []
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for text in pip.stdout or ():
            output.append(text)
            yield text
    if pip.returncode:
        raise SetupError("pip failed:\n" + "".join(output[-15:]))


if __name__ == "__main__":
    sys.exit(main())
