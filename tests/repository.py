"""A git repository of a test's own, to run the project's checks in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Repository:
    """A working tree with a history, and the project's programs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The checks find their programs where make has put them.
        (path / ".venv").symlink_to(sys.prefix)

    @classmethod
    def of(cls, path: Path, *folders: str) -> Repository:
        """Begin with one commit: copies of some of the project's folders."""
        for folder in folders:
            shutil.copytree(ROOT / folder, path / folder, ignore=shutil.ignore_patterns("__pycache__"))
        (path / ".gitignore").write_text(".venv\n")
        repository = cls(path)
        repository.git("init", "--quiet")
        repository.commit("Begin")
        return repository

    def clone(self, path: Path, *options: str) -> Repository:
        """Return a clone, fetched as from elsewhere."""
        self.git("clone", "--quiet", *options, self.path.as_uri(), str(path))
        return Repository(path)

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        (self.path / name).write_text(text.replace(old, new))

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.path, check=True, env=_environment())

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, check=False, env=_environment()
        )


def _environment() -> dict[str, str]:
    # Nothing of the user's own configuration, which may ask for signatures, nor of a hook that runs tests.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    author = {f"GIT_{role}_{key}": "test" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    return env | author | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
