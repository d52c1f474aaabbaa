from __future__ import annotations

from datetime import timedelta
from unittest.mock import sentinel

import pytest

from gateway.domain.credential import Credential, GcpOauthToken
from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument, Unauthenticated, Unavailable, Unsupported
from gateway.ports import Storage
from gateway.services.vending.servicer import VendingServicer
from gateway.v1.vending_pb2 import IssueRequest, IssueResponse
from tests.fakes.grants import GRANT, NOON, Grants
from tests.fakes.issuer import FakeIssuer
from tests.fakes.storages import FakeStorages

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


def servicer(grants: Grants, issuer: FakeIssuer | None, prefix: str = "s3://lake") -> VendingServicer:
    storage = Storage(name="lake", prefix=parse_location(prefix), issuer=issuer)
    return VendingServicer(
        storages=FakeStorages(storage), verifier=grants.verifier(Audience.VENDING), clock=grants.clock
    )


async def issue(servicer: VendingServicer, grant: str, location: int = 0) -> IssueResponse:
    return await servicer.Issue(IssueRequest(grant=grant, location=location), sentinel.context)


async def test_credential_is_issued_for_the_location_of_the_grant(grants, issuer):
    response = await issue(servicer(grants, issuer), grant(grants))

    ((seen, location),) = issuer.calls
    assert (seen.principal, location) == ("acme", GRANT.location)
    assert response.location == "s3://lake/sales/orders"
    assert response.gcp.oauth_token == "ya29"
    assert response.expires_at_ms == CREDENTIAL.expires_at.timestamp() * 1000


async def test_auxiliary_location_is_taken_from_the_grant(grants, issuer):
    response = await issue(servicer(grants, issuer, "s3://archive"), grant(grants), location=1)

    assert issuer.calls[0][1] == GRANT.auxiliary_locations[0]
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
