"""The checks of the internal API pass on what is here, and would fail on what must not come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import BUF
from tests.repository import ROOT, Repository

CATALOG = "proto/gateway/v1/catalog.proto"
CHECK = ".ci/check-proto"

pytestmark = pytest.mark.component(BUF)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path, "proto", "gateway/v1", ".ci")


def test_protos_are_clean_and_formatted():
    buf = str(Path(sys.prefix) / "bin" / "buf")
    subprocess.run([buf, "lint", "proto"], cwd=ROOT, check=True)
    subprocess.run([buf, "format", "proto", "--diff", "--exit-code"], cwd=ROOT, check=True)


def test_generated_code_is_fresh(repository):
    assert repository.run(CHECK, "fresh").returncode == 0


def test_a_proto_changed_without_generating_is_stale(repository):
    repository.replace(CATALOG, "message Share {", "message Lot {}\n\nmessage Share {")
    result = repository.run(CHECK, "fresh")
    assert result.returncode == 1
    assert "run `make proto`" in result.stderr


def test_the_first_commit_has_nothing_to_compare_with(repository):
    assert "nothing to compare with" in repository.run(CHECK, "compatible").stdout


def test_an_added_message_is_compatible_with_the_commit_before(repository):
    repository.replace(CATALOG, "message Share {", "message Lot {}\n\nmessage Share {")
    repository.commit("Add")
    assert "compatible with HEAD~1" in repository.run(CHECK, "compatible").stdout


def test_a_break_that_is_not_committed_yet_is_found(repository):
    repository.replace(CATALOG, "message Share {", "message Parcel {")
    assert "breaks HEAD " in repository.run(CHECK, "compatible").stderr


@pytest.mark.parametrize(
    ("message", "status"),
    [("Rename", 1), ("Rename\n\nAPI break: nothing was released yet", 0)],
    ids=["silent", "said"],
)
def test_a_break_before_the_first_release_must_be_said(repository, message, status):
    repository.replace(CATALOG, "message Share {", "message Parcel {")
    repository.commit(message)
    assert repository.run(CHECK, "compatible").returncode == status


def test_a_break_of_a_release_is_refused_whatever_the_commit_says(repository):
    repository.git("tag", "v0.1.0")
    repository.replace(CATALOG, "message Share {", "message Parcel {")
    repository.commit("Rename\n\nAPI break: tidier")
    result = repository.run(CHECK, "compatible")
    assert result.returncode == 1
    assert "breaks v0.1.0" in result.stderr
