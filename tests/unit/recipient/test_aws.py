from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sluice_recipient.aws import aws_keys, container_answer, process_answer, profile_section
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
