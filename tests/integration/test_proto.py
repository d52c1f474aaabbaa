"""The checks of the internal API pass on what is here, and would fail on what must not come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import BUF
from tests.repository import ROOT, Repository

CATALOG = "proto/gateway/v1/catalog.proto"
PROMISED = "proto/gateway/v1.binpb"
CHECK = ".ci/check-proto"

ADDED = ("message Share {", "message Lot {}\n\nmessage Share {")
RENAMED = ("string display_name = 3;", "string title = 3;")

pytestmark = pytest.mark.component(BUF)


@pytest.fixture
def repository(tmp_path):
    return Repository.of(tmp_path / "origin", "proto", "gateway/v1", ".ci")


def test_protos_are_clean_and_formatted():
    buf = str(Path(sys.prefix) / "bin" / "buf")
    subprocess.run([buf, "lint", "proto"], cwd=ROOT, check=True)
    subprocess.run([buf, "format", "proto", "--diff", "--exit-code"], cwd=ROOT, check=True)


def test_generated_code_is_fresh(repository):
    assert repository.run(CHECK, "fresh").returncode == 0


def test_a_proto_changed_without_generating_is_stale(repository):
    repository.replace(CATALOG, *ADDED)
    result = repository.run(CHECK, "fresh")
    assert result.returncode == 1
    assert "run `make proto`" in result.stderr


def test_what_is_here_is_what_was_promised(repository):
    result = repository.run(CHECK, "compatible")
    assert (result.returncode, result.stderr) == (0, "")


def test_without_what_was_promised_nothing_is_compatible(repository):
    repository.git("rm", "--quiet", PROMISED)
    repository.commit("Remove")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == 1
    assert f"there is no {PROMISED} to compare with" in result.stderr


def test_what_is_added_must_be_promised(repository):
    repository.replace(CATALOG, *ADDED)
    repository.commit("Add")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == 1
    assert f"{PROMISED} lacks what the protos have: run `make proto`" in result.stderr

    assert repository.run(CHECK, "promise").returncode == 0
    repository.commit("Promise")
    assert repository.run(CHECK, "compatible").returncode == 0


def test_a_break_that_is_not_committed_yet_is_found(repository):
    repository.replace(CATALOG, *RENAMED)
    assert f"breaks {PROMISED} " in repository.run(CHECK, "compatible").stderr


def test_a_break_is_found_however_many_commits_follow_it(repository):
    repository.replace(CATALOG, *RENAMED)
    repository.commit("Rename")
    (repository.path / "README.md").write_text("another change\n")
    repository.commit("Write")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == 1
    assert f"breaks {PROMISED} " in result.stderr


def test_a_break_is_found_in_a_clone_without_a_history(repository, tmp_path):
    repository.replace(CATALOG, *RENAMED)
    repository.commit("Rename")
    clone = repository.clone(tmp_path / "clone", "--depth=1")
    result = clone.run(CHECK, "compatible")
    assert result.returncode == 1
    assert f"breaks {PROMISED} " in result.stderr


def test_a_clone_without_a_history_of_what_is_compatible_passes(repository, tmp_path):
    (repository.path / "README.md").write_text("another change\n")
    repository.commit("Write")
    result = repository.clone(tmp_path / "clone", "--depth=1").run(CHECK, "compatible")
    assert result.returncode == 0, result.stderr
    assert "a shallow clone" in result.stdout


def test_a_break_is_not_promised(repository):
    repository.replace(CATALOG, *RENAMED)
    before = (repository.path / PROMISED).read_bytes()
    assert repository.run(CHECK, "promise").returncode == 1
    assert (repository.path / PROMISED).read_bytes() == before


@pytest.mark.parametrize("at_once", [True, False], ids=["one commit", "three commits"])
@pytest.mark.parametrize(
    ("message", "status"),
    [("Rename", 1), ("Rename\n\nAPI break: nothing was released yet", 0)],
    ids=["silent", "said"],
)
def test_a_break_before_the_first_release_must_be_said(repository, message, status, at_once):
    (repository.path / PROMISED).unlink()
    if not at_once:
        repository.commit("Remove")
    repository.replace(CATALOG, *RENAMED)
    assert repository.run(CHECK, "promise").returncode == 0
    repository.commit(message)
    if not at_once:
        (repository.path / "README.md").write_text("another change\n")
        repository.commit("Write")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == status
    assert ("as it was before" in result.stderr) == bool(status)


def test_what_two_branches_added_is_promised_together(repository):
    repository.git("checkout", "--quiet", "-b", "side")
    repository.replace(CATALOG, *ADDED)
    repository.run(CHECK, "promise")
    repository.commit("Add one")
    repository.git("checkout", "--quiet", "-")
    repository.replace(
        "proto/gateway/v1/vending.proto",
        "message IssueRequest {",
        "message Till {}\n\nmessage IssueRequest {",
    )
    repository.run(CHECK, "promise")
    repository.commit("Add another")
    repository.git("merge", "--quiet", "--no-commit", "--strategy-option=ours", "side")
    repository.run(CHECK, "promise")
    repository.commit("Merge")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == 0, result.stderr


def test_a_break_of_a_release_is_refused_whatever_the_commit_says(repository):
    repository.git("tag", "v0.1.0")
    (repository.path / PROMISED).unlink()
    repository.replace(CATALOG, *RENAMED)
    repository.run(CHECK, "promise")
    repository.commit("Rename\n\nAPI break: tidier")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == 1
    assert "breaks v0.1.0" in result.stderr


def test_a_commit_of_choice_is_compared_with_too(repository):
    assert "compatible with HEAD\n" in repository.run(CHECK, "compatible", "HEAD").stdout
