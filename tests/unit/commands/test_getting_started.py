"""What the page for a new operator says is what the commands take."""

from __future__ import annotations

import re
import shlex

import yaml

from gateway.adapters.storage_check import check_storages
from gateway.commands import COMMANDS, parse_arguments
from gateway.config.load import load
from tests.cases import each_case
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "getting-started-s3.md").read_text()
HASH = f"sha256:{'0' * 64}"


def test_configuration_has_no_fault_once_the_token_is_in_it(tmp_path):
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    config = yaml.safe_load(text)
    config["recipients"][0]["tokens"] = [{"hash": HASH}]
    file = tmp_path / "server.yaml"
    file.write_text(yaml.safe_dump(config))

    loaded = load(file, {"HOME": "/home/a"})

    assert list(check_storages(loaded.config)) == []


def commands() -> list[list[str]]:
    lines = re.findall(r"^    (sluice (?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
    return [shlex.split(line.replace("\\\n", " "))[1:] for line in lines]


@each_case("arguments", commands(), ids=" ".join)
def test_commands_are_taken_as_they_are_written(arguments):
    assert parse_arguments(arguments).run


def test_page_shows_the_first_commands_of_an_operator():
    shown = {arguments[0] for arguments in commands()}
    assert {"token", "check-config", "verify-storage", "serve"} <= shown <= set(COMMANDS)
