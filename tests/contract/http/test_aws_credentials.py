"""AWS tools take their credentials from the gateway, by the endpoint that SDKs look for in containers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from botocore.credentials import ContainerProvider, RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError
from botocore.utils import ContainerMetadataFetcher

from tests.cases import each_case
from tests.components import BOTO3
from tests.contract.http.client import Client
from tests.contract.http.deployments import fakes
from tests.contract.http.facts import Gateway, TableFacts

pytestmark = pytest.mark.component(BOTO3)


def load(
    gateway: Gateway, table: TableFacts, query: str = "", token: str | None = None
) -> RefreshableCredentials:
    """Do what boto3 does when it finds these two variables."""
    environment = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{gateway.url}{table.path}/aws-credentials{query}",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": f"Bearer {gateway.token if token is None else token}",
    }
    # It would wait a second before it tries again.
    fetcher = ContainerMetadataFetcher(sleep=lambda _: None)
    credentials = ContainerProvider(environment, fetcher).load()
    assert isinstance(credentials, RefreshableCredentials)
    return credentials


@pytest.mark.smoke
def test_botocore_takes_the_same_keys_that_the_protocol_gives(client: Client, gateway: Gateway) -> None:
    table = gateway.dir_only
    keys = client.post(f"{table.path}/temporary-table-credentials").json()["credentials"][
        "awsTempCredentials"
    ]
    frozen = load(gateway, table).get_frozen_credentials()
    assert (frozen.access_key, frozen.secret_key, frozen.token) == (
        keys["accessKeyId"],
        keys["secretAccessKey"],
        keys["sessionToken"],
    )


def test_botocore_names_an_auxiliary_location_in_the_query(gateway: Gateway) -> None:
    table = gateway.both_modes
    (location,) = table.auxiliary_locations
    query = f"?location={quote(location, safe='')}"
    assert load(gateway, table, query).get_frozen_credentials().access_key


def test_content_type_and_expiration(client: Client, gateway: Gateway) -> None:
    answer = client.get(f"{gateway.dir_only.path}/aws-credentials")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert set(answer.json()) == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}
    expires = datetime.strptime(answer.json()["Expiration"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert expires > datetime.now(UTC) + timedelta(minutes=20)


def answers_error(client: Client, path: str, token: str | None = None) -> tuple[int, str]:
    answer = client.get(path, token=token)
    body = answer.json()
    assert set(body) == {"code", "errorCode", "message"}
    assert body["code"] == body["errorCode"]
    return answer.status, body["code"]


@pytest.mark.smoke
def test_errors_have_the_code_where_sdks_look_for_it(client: Client, gateway: Gateway) -> None:
    path = f"{gateway.both_modes.path}/aws-credentials"
    assert answers_error(client, path, gateway.expired_token) == (401, "UNAUTHENTICATED")
    assert answers_error(client, path, gateway.disabled_token) == (403, "PERMISSION_DENIED")
    assert answers_error(client, f"{path}?location=s3://x") == (400, "INVALID_PARAMETER_VALUE")
    assert answers_error(client, f"{gateway.plain.path}/aws-credentials") == (400, "UNSUPPORTED_OPERATION")
    assert answers_error(client, f"{gateway.hidden.path}/aws-credentials") == (404, "RESOURCE_DOES_NOT_EXIST")


@each_case(
    ("table", "token", "words"),
    [
        ("plain", None, "does not offer dir access"),
        ("hidden", None, "does not exist"),
        ("dir_only", "slc_unknown", "bearer token"),
    ],
)
def test_botocore_shows_why_there_are_none(
    gateway: Gateway, table: str, token: str | None, words: str
) -> None:
    with pytest.raises(CredentialRetrievalError, match=words):
        load(gateway, getattr(gateway, table), token=token)


def in_milliseconds(span: timedelta) -> int:
    return int((time.time() + span.total_seconds()) * 1000)


@pytest.mark.parametrize(
    ("left", "is_renewed"), [(timedelta(minutes=5), True), (timedelta(minutes=40), False)]
)
def test_botocore_comes_back_by_itself_before_its_keys_expire(left: timedelta, *, is_renewed: bool) -> None:
    with fakes() as running:
        vending = running.services.vending
        vending.credential.expires_at_ms = in_milliseconds(left)
        credentials = load(running.gateway, running.gateway.dir_only)
        vending.credential.aws.access_key_id = "ASIALATER"
        vending.credential.expires_at_ms = in_milliseconds(timedelta(hours=1))
        frozen = credentials.get_frozen_credentials()
        assert frozen.access_key == ("ASIALATER" if is_renewed else "ASIAFAKE")
        assert [event.mode for event in running.audit.appended] == ["dir"] * len(vending.requests)
