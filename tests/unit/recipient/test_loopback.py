from __future__ import annotations

import json

import pytest
from sluice_recipient.credential import parse_credential
from sluice_recipient.errors import NotFound
from sluice_recipient.loopback import CredentialEndpoint

from tests.fakes.recipient_transport import aws_answer, azure_answer


def _source(response):
    return lambda: parse_credential(json.loads(response.body))


@pytest.fixture
def endpoint() -> CredentialEndpoint:
    endpoint = CredentialEndpoint("right")
    endpoint.register("/a", _source(aws_answer(key="AKIAA")))
    endpoint.register("/b", _source(aws_answer(key="AKIAB")))
    return endpoint


@pytest.mark.parametrize(("path", "key"), [("/a", "AKIAA"), ("/b", "AKIAB")])
def test_each_path_has_its_own_credential(endpoint, path, key):
    status, content = endpoint.answer(path, "right")

    assert (status, content["AccessKeyId"]) == (200, key)


@pytest.mark.parametrize("authorization", ["", "wrong", "right ", "Bearer right", "r\u00efght"])
def test_without_the_token_nothing_is_told(endpoint, authorization):
    assert endpoint.answer("/a", authorization)[0] == 401
    assert endpoint.answer("/nothing", authorization)[0] == 401


def test_an_unknown_path_is_not_found(endpoint):
    assert endpoint.answer("/", "right")[0] == 404


def test_what_is_wrong_is_passed_on(endpoint):
    def fail():
        raise NotFound("table not found")

    endpoint.register("/c", fail)

    assert endpoint.answer("/c", "right") == (503, {"code": "Unavailable", "message": "table not found"})


def test_a_credential_of_another_cloud_is_no_answer(endpoint):
    endpoint.register("/d", _source(azure_answer()))

    assert endpoint.answer("/d", "right")[0] == 503
