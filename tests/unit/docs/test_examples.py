"""Configurations that the documentation gives are ones that the gateway takes."""

from __future__ import annotations

import pytest

from gateway.commands import dispatch
from pipeline.usage.schema import TABLES
from tests.repository import ROOT

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example_is_a_sound_configuration(file, capsys, tmp_path):
    status = dispatch(["check-config", "--config", str(file)], {"SLUICE_STATE_DIR": str(tmp_path)})
    assert status == 0, capsys.readouterr().err


def test_usage_share_has_every_table_of_usage():
    text = (ROOT / "docs" / "examples" / "usage-share.yaml").read_text()
    assert all(f"/usage/{name}}}" in text for name in TABLES)
