from __future__ import annotations

import json
import shlex
from datetime import timedelta

import pytest
from sluice_recipient.aws import (
    aws_keys,
    container_answer,
    process_answer,
    process_command,
    profile_section,
)
from sluice_recipient.credential import parse_credential
from sluice_recipient.errors import NotUsable

from tests.fakes.recipient_transport import NOON, SECRETS, aws_answer, azure_answer


def _credential(response):
    return parse_credential(json.loads(response.body))


def test_a_process_prints_version_one():
    assert process_answer(_credential(aws_answer())) == {
        "Version": 1,
        "AccessKeyId": "AKIA1",
        "SecretAccessKey": SECRETS[0],
        "SessionToken": SECRETS[1],
        "Expiration": "2030-01-01T13:00:00Z",
    }


def test_a_container_calls_the_session_token_token():
    answer = container_answer(_credential(aws_answer()))

    assert answer["Token"] == SECRETS[1]
    assert set(answer) == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}


def test_the_expiration_is_never_later_than_the_truth():
    late = aws_answer(expires_at=NOON + timedelta(milliseconds=999))

    assert container_answer(_credential(late))["Expiration"] == "2030-01-01T12:00:00Z"


def test_other_clouds_have_no_aws_keys():
    with pytest.raises(NotUsable, match="S3"):
        aws_keys(_credential(azure_answer()))


def test_a_section_names_the_command():
    assert profile_section("table", "run me") == "[table]\ncredential_process = run me\n"


def test_a_process_is_named_by_the_path_of_the_installed_command(tmp_path):
    script = tmp_path / "my tools" / "sluice-recipient"
    script.parent.mkdir()
    script.touch()

    command = process_command("/a b/reader.share#a.b.c", str(script.with_name("python")))

    assert command == f"'{script}' credentials '/a b/reader.share#a.b.c'"


def test_a_process_is_named_by_its_interpreter_where_no_command_is_installed(tmp_path):
    python = str(tmp_path / "python")

    command = process_command("/reader.share#a.b.c", python)

    assert shlex.split(command) == [python, "-m", "sluice_recipient", "credentials", "/reader.share#a.b.c"]
