from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from gateway.commands.config_argument import add_config_argument, take_config
from tests.cases import each_case


def parse(*arguments: str, required: bool = True) -> tuple[Path | None, list[str]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--other")
    add_config_argument(parser, "the configuration", required=required)
    args, rest = parser.parse_known_args(arguments)
    left = list(take_config(args, rest))
    return args.config, left


@each_case(
    "arguments",
    [["--config", "a.yaml"], ["a.yaml"], ["--other", "x", "a.yaml"], ["a.yaml", "--other", "x"]],
)
def test_file_is_taken_with_and_without_the_option(arguments):
    assert parse(*arguments) == (Path("a.yaml"), [])


def test_second_file_is_left_over():
    assert parse("--config", "a.yaml", "b.yaml") == (Path("a.yaml"), ["b.yaml"])
    assert parse("a.yaml", "b.yaml") == (None, ["a.yaml", "b.yaml"])


def test_unknown_option_is_no_file():
    assert parse("--config", "a.yaml", "--what") == (Path("a.yaml"), ["--what"])
    assert parse("--what", required=False) == (None, ["--what"])


def test_missing_file_is_an_error_only_where_it_is_needed(capsys):
    assert parse(required=False) == (None, [])
    with pytest.raises(SystemExit):
        parse()
    assert "the configuration is missing: give --config FILE" in capsys.readouterr().err


def test_command_without_a_configuration_keeps_what_is_left_over():
    assert take_config(argparse.Namespace(), ["a.yaml"]) == ["a.yaml"]
