from __future__ import annotations

import json
from typing import Any

import pytest
from sluice_recipient.credential import AwsKeys, parse_credential
from sluice_recipient.errors import NotUsable
from sluice_recipient.storage import container_options, renewed_place, static_options, to_s3

from tests.cases import each_case
from tests.fakes.recipient_transport import SECRETS, aws_answer, azure_answer, gcp_answer


def _options(response):
    return static_options(parse_credential(json.loads(response.body)))


def _keys(**place: Any) -> AwsKeys:
    return AwsKeys(access_key_id="AKIA1", secret_access_key="s", session_token="t", **place)


def test_session_keys_become_options():
    assert _options(aws_answer(region="eu-west-1")) == {
        "aws_skip_signature": "false",
        "aws_region": "eu-west-1",
        "aws_access_key_id": "AKIA1",
        "aws_secret_access_key": SECRETS[0],
        "aws_session_token": SECRETS[1],
    }


@pytest.mark.parametrize(("endpoint", "http"), [("http://127.0.0.1:9000", "true"), ("https://s3.x", "false")])
def test_a_store_of_its_own_is_asked_by_path(endpoint, http):
    options = _options(aws_answer(endpoint=endpoint))

    assert options["AWS_ENDPOINT_URL"] == options["aws_endpoint_url_s3"] == endpoint
    assert options["aws_virtual_hosted_style_request"] == "false"
    assert options["aws_allow_http"] == http


def test_a_shared_access_signature_names_its_account():
    assert _options(azure_answer()) == {
        "azure_storage_account_name": "account",
        "azure_storage_sas_key": "sig=made-up",
    }


def test_a_token_is_a_bearer_token():
    assert _options(gcp_answer()) == {"google_bearer_token": "ya29.made-up"}


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("eu-west-1", "https://s3.eu-west-1.amazonaws.com"),
        ("cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_a_renewed_credential_on_aws_names_the_endpoint_of_its_region(region, endpoint):
    place = renewed_place(_keys(region=region))

    assert (place["AWS_ENDPOINT_URL"], place["aws_region"]) == (endpoint, region)


def test_without_region_and_endpoint_there_is_no_place():
    with pytest.raises(NotUsable, match="region"):
        renewed_place(_keys())


def test_options_for_renewal_hold_an_address_and_no_key():
    assert container_options("http://127.0.0.1:1/x", "/some/token") == {
        "aws_container_credentials_full_uri": "http://127.0.0.1:1/x",
        "aws_container_authorization_token_file": "/some/token",
    }


@each_case(
    ("given", "found"),
    [
        ("s3a://lake/t", "s3://lake/t"),
        ("s3n://lake/t", "s3://lake/t"),
        ("s3://lake/t", "s3://lake/t"),
        ("abfss://lake@a.dfs.core.windows.net/t", "abfss://lake@a.dfs.core.windows.net/t"),
    ],
)
def test_s3_has_one_scheme(given, found):
    assert to_s3(given) == found
