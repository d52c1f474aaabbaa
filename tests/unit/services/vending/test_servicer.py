from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import sentinel

import pytest

from gateway.domain.credential import (
    AwsTempCredentials,
    AzureDelegationKey,
    AzureUserDelegationSas,
    Credential,
    GcpOauthToken,
)
from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.domain.table import AccessMode
from gateway.errors import Internal, InvalidArgument, Throttled, Unauthenticated, Unavailable, Unsupported
from gateway.ports import Storage
from gateway.services.vending.servicer import VendingServicer
from gateway.v1.vending_pb2 import IssueRequest, IssueResponse
from tests.fakes.grants import GRANT, NOON, Grants
from tests.fakes.issuer import FakeIssuer
from tests.fakes.storages import FakeStorages

DELEGATION_KEY = AzureDelegationKey(
    oid="o", tid="t", start="2025", expiry="2026", service="b", version="v", value="a2V5"
)
CREDENTIAL = Credential(
    id="c-1", secret=GcpOauthToken(oauth_token="ya29"), expires_at=NOON + timedelta(hours=1)
)


@pytest.fixture
def grants():
    return Grants()


@pytest.fixture
def issuer():
    return FakeIssuer(CREDENTIAL)


def grant(grants: Grants, **changes: object) -> str:
    return grants.sign(**{"audience": Audience.VENDING, "access_modes": (AccessMode.DIR,), **changes})


def servicer(
    grants: Grants, issuer: FakeIssuer | None, prefix: str = "s3://lake", **settings: Any
) -> VendingServicer:
    storage = Storage(name="lake", prefix=parse_location(prefix), issuer=issuer, **settings)
    return VendingServicer(
        storages=FakeStorages(storage), verifier=grants.verifier(Audience.VENDING), clock=grants.clock
    )


async def issue(servicer: VendingServicer, grant: str, location: int = 0) -> IssueResponse:
    return await servicer.Issue(IssueRequest(grant=grant, location=location), sentinel.context)


async def test_credential_is_issued_for_the_location_of_the_grant(grants, issuer):
    response = await issue(servicer(grants, issuer), grant(grants))

    (scope,) = issuer.calls
    assert (scope.recipient, scope.location) == ("acme", GRANT.location)
    assert response.location == "s3://lake/sales/orders"
    assert response.gcp.oauth_token == "ya29"
    assert response.expires_at_ms == CREDENTIAL.expires_at.timestamp() * 1000


async def test_auxiliary_location_is_taken_from_the_grant(grants, issuer):
    response = await issue(servicer(grants, issuer, "s3://archive"), grant(grants), location=1)

    assert issuer.calls[0].location == GRANT.auxiliary_locations[0]
    assert response.location == "s3://archive/orders"


async def test_location_that_the_grant_does_not_have_is_refused(grants, issuer):
    with pytest.raises(InvalidArgument):
        await issue(servicer(grants, issuer), grant(grants), location=2)

    assert issuer.calls == []


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"audience": Audience.PRESIGN}, Unauthenticated),
        ({"access_modes": (AccessMode.URL,)}, Unsupported),
        ({"history_shared": False}, Unsupported),
        ({"start_version": 1}, Unsupported),
        ({"location": parse_location("s3://elsewhere/orders")}, Unsupported),
    ],
    ids=str,
)
async def test_grant_that_does_not_allow_a_credential_is_refused_before_the_mint(
    grants, issuer, changes, error
):
    with pytest.raises(error):
        await issue(servicer(grants, issuer), grant(grants, **changes))

    assert issuer.calls == []


async def test_storage_that_cannot_issue_is_named_without_its_path(grants):
    with pytest.raises(Unsupported, match="cannot issue temporary credentials") as raised:
        await issue(servicer(grants, None), grant(grants))

    assert "retail.sales.orders" in raised.value.message
    assert "lake" not in raised.value.message


async def test_credential_that_has_expired_already_is_not_served(grants, issuer):
    grants.now = CREDENTIAL.expires_at

    with pytest.raises(Unavailable):
        await issue(servicer(grants, issuer), grant(grants, expires_at=grants.now + timedelta(seconds=60)))


async def test_an_issuer_is_told_the_location_whom_it_names_the_life_and_the_last_revocation(grants, issuer):
    revoked_at = NOON - timedelta(hours=1)

    await issue(
        servicer(grants, issuer, credential_life=timedelta(minutes=20)),
        grant(grants, principal="zoe", revoked_at=revoked_at),
    )

    assert issuer.calls == [
        Scope(location=GRANT.location, recipient="zoe", life=timedelta(minutes=20), revoked_at=revoked_at)
    ]


async def test_recipients_have_one_scope_where_credentials_name_nobody(grants):
    issuer = FakeIssuer(CREDENTIAL, names_recipients=False)
    vending = servicer(grants, issuer)

    await issue(vending, grant(grants, principal="zoe", revoked_at=NOON))
    await issue(vending, grant(grants, principal="acme"))

    assert issuer.calls == [Scope(location=GRANT.location, life=timedelta(hours=1))] * 2


@pytest.mark.parametrize("prefix", ["s3://lake", "abfss://c@a.dfs.core.windows.net", "gs://lake"])
async def test_a_root_is_refused_before_the_mint_unless_its_storage_allows_it(grants, issuer, prefix):
    root = grant(grants, location=parse_location(f"{prefix}/"), auxiliary_locations=())

    with pytest.raises(Unsupported, match="allowRoot") as raised:
        await issue(servicer(grants, issuer, prefix), root)

    assert issuer.calls == []
    assert "lake" not in raised.value.message
    assert (await issue(servicer(grants, issuer, prefix, allow_root=True), root)).location == prefix


async def test_an_auxiliary_root_is_refused_too(grants, issuer):
    root = grant(grants, auxiliary_locations=(parse_location("s3://lake"),))

    with pytest.raises(Unsupported, match="allowRoot"):
        await issue(servicer(grants, issuer), root, location=1)


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("the store asks for fewer calls", retry_after=timedelta(seconds=3)),
        Unsupported("this store cannot express the path"),
        Throttled("slow down"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_an_issuer_says_in_our_words_is_passed_on(grants, error):
    with pytest.raises(type(error)) as raised:
        await issue(servicer(grants, FakeIssuer(CREDENTIAL, error=error)), grant(grants))

    assert raised.value is error


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyError, ValueError])
async def test_what_an_issuer_did_not_foresee_is_internal_and_its_words_go_nowhere(grants, caplog, error):
    issuer = FakeIssuer(CREDENTIAL, error=error("AKIASECRET was answered"))

    with pytest.raises(Internal) as raised:
        await issue(servicer(grants, issuer), grant(grants))

    assert raised.value.message == "internal error"
    assert "AKIASECRET" not in caplog.text
    assert f"storage lake failed to issue: {error.__name__}" in caplog.text
    assert "fakes/issuer.py" in caplog.text


AWS = AwsTempCredentials(access_key_id="AKIA", secret_access_key="s", session_token="t")


@pytest.mark.parametrize(
    "credential",
    [
        replace(CREDENTIAL, secret=replace(AWS, access_key_id="")),
        replace(CREDENTIAL, secret=replace(AWS, secret_access_key="")),
        replace(CREDENTIAL, secret=replace(AWS, session_token="")),
        replace(CREDENTIAL, secret=AzureUserDelegationSas(sas_token="")),
        replace(CREDENTIAL, secret=GcpOauthToken(oauth_token="")),
        replace(CREDENTIAL, id=""),
        replace(CREDENTIAL, secret=DELEGATION_KEY),
    ],
    ids=["no key", "no secret", "no session", "no SAS", "no token", "no id", "what only signs"],
)
async def test_a_credential_that_is_not_whole_is_never_handed_out(grants, credential):
    with pytest.raises(Internal):
        await issue(servicer(grants, FakeIssuer(credential)), grant(grants))


@pytest.mark.parametrize(
    ("secret", "block"),
    [
        (AWS, "aws"),
        (AzureUserDelegationSas(sas_token="sv"), "azure"),
        (GcpOauthToken(oauth_token="y"), "gcp"),
    ],
)
async def test_every_kind_of_credential_is_handed_out(grants, secret, block):
    response = await issue(servicer(grants, FakeIssuer(replace(CREDENTIAL, secret=secret))), grant(grants))

    assert response.WhichOneof("credential") == block
    assert response.credential_id == "c-1"
