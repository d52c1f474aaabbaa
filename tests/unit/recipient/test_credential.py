from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sluice_recipient.credential import AwsKeys, AzureSas, GcpToken, parse_credential
from sluice_recipient.errors import Unavailable

from tests.cases import each_case
from tests.fakes.recipient_transport import NOON, SECRETS, aws_answer, azure_answer, gcp_answer


def _content(response):
    return json.loads(response.body)


def test_session_keys_are_read_with_their_place():
    credential = parse_credential(_content(aws_answer(region="eu-west-1", endpoint="https://s3.example")))

    assert credential.location == "s3://lake/orders"
    assert credential.expires_at == NOON + timedelta(hours=1)
    assert credential.secret == AwsKeys(
        access_key_id="AKIA1",
        secret_access_key=SECRETS[0],
        session_token=SECRETS[1],
        region="eu-west-1",
        endpoint="https://s3.example",
    )


@pytest.mark.parametrize(
    ("answer", "secret"),
    [
        (azure_answer(), AzureSas(sas_token="sig=made-up")),
        (gcp_answer(), GcpToken(oauth_token="ya29.made-up")),
    ],
)
def test_other_clouds_are_read_too(answer, secret):
    assert parse_credential(_content(answer)).secret == secret


@pytest.mark.parametrize("answer", [aws_answer(), azure_answer(), gcp_answer()])
def test_no_secret_is_shown(answer):
    shown = repr(parse_credential(_content(answer)))

    assert not any(secret in shown for secret in (*SECRETS, "sig=made-up", "ya29.made-up"))


@each_case(
    "change",
    [
        {"location": ""},
        {"location": None},
        {"expirationTime": "soon"},
        {"expirationTime": None},
        {"expirationTime": 10**30},
        {"awsTempCredentials": None},
        {"awsTempCredentials": {"accessKeyId": "AKIA1"}},
        {"awsTempCredentials": "made-up-secret-key"},
        {
            "awsTempCredentials": {
                "accessKeyId": "a",
                "secretAccessKey": "b",
                "sessionToken": "c",
                "region": 7,
            }
        },
    ],
)
def test_half_a_credential_is_refused_and_not_quoted(change):
    content = _content(aws_answer())

    with pytest.raises(Unavailable) as raised:
        parse_credential({"credentials": content["credentials"] | change})
    assert SECRETS[0] not in str(raised.value)
    assert raised.value.__cause__ is None


@each_case("answer", [None, [], {}, {"credentials": None}, "text"])
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(Unavailable, match="not a credential"):
        parse_credential(answer)
