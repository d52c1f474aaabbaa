from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.transport import AsyncHttpTransport
from azure.core.rest import HttpRequest
from azure.identity.aio import (
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)

from gateway.errors import Unavailable
from tests.background import finish_background
from tests.cases import each_case
from tests.unit.vendors.azure.doubles import NOON, FakeClock
from vendors.azure.config import parse
from vendors.azure.identity import STORAGE_SCOPE, Tokens, open_credential

SECRET = {"kind": "clientSecret", "tenantId": "t1", "clientId": "c1", "clientSecret": {"value": "hush"}}
AMBIENT = {
    "AZURE_TENANT_ID": "ambient-tenant",
    "AZURE_CLIENT_ID": "ambient-client",
    "AZURE_CLIENT_SECRET": "ambient-secret",
    "AZURE_AUTHORITY_HOST": "ambient.example",
}


@dataclass(frozen=True)
class SdkToken:
    token: str
    expires_on: int


class Sdk:
    """Stands for the SDK: gives tokens of an hour, or fails."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.scopes: list[str] = []
        self.closed = 0
        self.fault: Exception | None = None

    async def open(self, options, stack):
        stack.callback(self._close)
        return self

    async def get_token(self, *scopes):
        self.scopes += scopes
        if self.fault is not None:
            raise self.fault
        expires_on = int((self.clock.now + timedelta(hours=1)).timestamp())
        return SdkToken(f"token-{len(self.scopes)}", expires_on)

    def _close(self):
        self.closed += 1


class Recorder(AsyncHttpTransport[HttpRequest, Any]):
    """A transport that records requests, and refuses them all."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    async def send(self, request, **_):
        self.requests.append(request)
        raise ClientAuthenticationError("refused")

    async def open(self):
        pass

    async def close(self):
        pass

    async def __aexit__(self, *_):
        pass


async def token_request(**options: object) -> HttpRequest:
    """Return the request for a token that the credential of these options sends."""
    transport = Recorder()
    async with AsyncExitStack() as stack:
        credential = await open_credential(parse(options), stack, transport)
        with pytest.raises(ClientAuthenticationError):
            await credential.get_token(STORAGE_SCOPE)
    (request,) = transport.requests
    return request


def made() -> tuple[FakeClock, Sdk, Tokens]:
    clock = FakeClock()
    sdk = Sdk(clock)
    tokens = Tokens(parse({"identity": SECRET}), "lake", STORAGE_SCOPE, clock, open_credential=sdk.open)
    return clock, sdk, tokens


@each_case(
    ("identity", "kind"),
    [
        (SECRET, ClientSecretCredential),
        ({"kind": "managedIdentity", "clientId": "c1"}, ManagedIdentityCredential),
        (
            {"kind": "workloadIdentity", "tenantId": "t", "clientId": "c", "tokenFile": "/run/token"},
            WorkloadIdentityCredential,
        ),
        ({"kind": "chain"}, DefaultAzureCredential),
    ],
)
async def test_identity_that_is_named_is_the_one_that_is_used(identity, kind):
    async with AsyncExitStack() as stack:
        assert type(await open_credential(parse({"identity": identity}), stack)) is kind


async def test_nothing_of_the_environment_takes_the_place_of_what_is_named(monkeypatch):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)

    request = await token_request(identity=SECRET)

    assert request.url == "https://login.microsoftonline.com/t1/oauth2/v2.0/token"
    assert request.data["client_id"] == "c1"
    assert request.data["client_secret"] == "hush"


@pytest.mark.parametrize("client", [{}, {"clientId": "c1"}])
async def test_machines_identity_is_never_that_of_the_pod(monkeypatch, client):
    for name, value in {**AMBIENT, "AZURE_FEDERATED_TOKEN_FILE": "/run/token"}.items():
        monkeypatch.setenv(name, value)

    request = await token_request(identity={"kind": "managedIdentity", **client})

    url = urlsplit(request.url)
    assert (url.netloc, url.path) == ("169.254.169.254", "/metadata/identity/oauth2/token")
    assert parse_qs(url.query).get("client_id") == ([client["clientId"]] if client else None)


async def test_authority_of_another_cloud_is_used():
    request = await token_request(identity=SECRET, authority="https://login.chinacloudapi.cn")

    assert request.url.startswith("https://login.chinacloudapi.cn/t1/")


async def test_token_is_kept_and_renewed_ahead():
    clock, sdk, tokens = made()
    first = await tokens.get()
    clock.now += timedelta(minutes=45)
    assert await tokens.get() == first
    clock.now += timedelta(minutes=6)
    assert await tokens.get() == first
    await finish_background()

    assert (await tokens.get()).value == "token-2"
    assert sdk.scopes == [STORAGE_SCOPE] * 2
    assert sdk.closed == 2


async def test_expiration_is_the_one_that_was_given():
    assert (await made()[2].get()).expires_at == NOON + timedelta(hours=1)


async def test_refused_identity_is_unavailable_and_the_log_names_the_reason_only(caplog):
    _, sdk, tokens = made()
    sdk.fault = ClientAuthenticationError("AADSTS7000215: invalid secret hush provided")

    with pytest.raises(Unavailable) as raised:
        await tokens.get()

    assert "AADSTS7000215" in caplog.text
    assert "storage lake" in caplog.text
    assert "hush" not in caplog.text
    assert "AADSTS" not in raised.value.message
    assert sdk.closed == 1


async def test_token_in_hand_outlives_an_outage():
    clock, sdk, tokens = made()
    first = await tokens.get()
    sdk.fault = ClientAuthenticationError("down")
    clock.now += timedelta(minutes=55)
    assert await tokens.get() == first
    clock.now += timedelta(minutes=5)

    with pytest.raises(Unavailable):
        await tokens.get()


async def test_missing_secret_file_is_unavailable(tmp_path, caplog):
    given = {**SECRET, "clientSecret": {"file": str(tmp_path / "gone")}}
    tokens = Tokens(parse({"identity": given}), "lake", STORAGE_SCOPE, FakeClock())

    with pytest.raises(Unavailable):
        await tokens.get()

    assert "cannot be read: No such file" in caplog.text


async def test_workload_identity_outside_a_cluster_is_unavailable(monkeypatch, caplog):
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    tokens = Tokens(parse({"identity": {"kind": "workloadIdentity"}}), "lake", STORAGE_SCOPE, FakeClock())

    with pytest.raises(Unavailable):
        await tokens.get()

    assert "ValueError" in caplog.text


async def test_token_prints_no_secret():
    assert "token-1" not in repr(await made()[2].get())
