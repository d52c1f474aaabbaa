"""The check of the tree finds what no file of the project may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository import Repository

CHECK = ".ci/check-tree"


@pytest.fixture
def repository(tmp_path):
    repository = Repository.of(tmp_path / "checkout", ".ci")
    (repository.path / "requirements.txt").write_text("polars==2.1.0 \\\n    --hash=sha256:00\n")
    return repository


def test_an_innocent_tree_passes(repository):
    result = repository.run(CHECK)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "see https://" + "pypi" + ".org/project/x"),
        ("requirements.txt", "--index-url https://mirror.example/simple"),
        ("requirements-dev.txt", "--find-links wheels"),
        ("notes.txt", f"kept in {Path.home()}/notes"),
        ("notes.txt", "kept in {parent}/notes"),
        ("uv" + ".lock", ""),
        ("web/package" + "-lock.json", "{}"),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_what_must_not_be_there_is_named(repository, name, text, committed):
    file = repository.path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text.replace("{parent}", str(repository.path.parent)))
    if committed:
        repository.commit("Add")
    result = repository.run(CHECK)
    assert result.returncode == 1
    assert name in result.stderr
