"""The Dockerfile under the eyes of hadolint."""

from __future__ import annotations

import subprocess

import pytest

from tests.components import HADOLINT
from tests.installed import installed
from tests.repository import ROOT

pytestmark = [pytest.mark.system, pytest.mark.component(HADOLINT)]

FOLDER = ROOT / "deploy" / "image"


def lint(file):
    command = [installed("hadolint"), "--config", FOLDER / "hadolint.yaml", "--no-color", file]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_hadolint_has_nothing_to_say():
    done = lint(FOLDER / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_says_what_is_wrong_where_something_is(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text("FROM python:latest\nRUN cd /tmp && sudo pip install x\n")
    done = lint(file)
    assert done.returncode == 1
    assert {"DL3004", "DL3007"} <= set(done.stdout.split())
