from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.domain.credential import AwsTempCredentials, AzureUserDelegationSas, Credential, GcpOauthToken
from gateway.domain.location import parse_location
from gateway.services.vending.codec import to_proto
from gateway.v1 import vending_pb2 as pb

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
AWS = AwsTempCredentials(
    access_key_id="AKIA", secret_access_key="s", session_token="t", region="eu-west-1", endpoint="https://s3"
)


@pytest.mark.parametrize(
    ("secret", "block", "message"),
    [
        (
            AWS,
            "aws",
            pb.AwsTempCredentials(
                access_key_id="AKIA",
                secret_access_key="s",
                session_token="t",
                region="eu-west-1",
                endpoint="https://s3",
            ),
        ),
        (AzureUserDelegationSas(sas_token="sv=1"), "azure", pb.AzureUserDelegationSas(sas_token="sv=1")),
        (GcpOauthToken(oauth_token="ya29"), "gcp", pb.GcpOauthToken(oauth_token="ya29")),
    ],
    ids=["aws", "azure", "gcp"],
)
def test_credential_becomes_its_providers_block(secret, block, message):
    credential = Credential(id="c-1", secret=secret, expires_at=NOON)

    response = to_proto(credential, parse_location("s3a://lake/orders"))

    assert response.WhichOneof("credential") == block
    assert getattr(response, block) == message
    assert response.credential_id == "c-1"
    assert response.expires_at_ms == NOON.timestamp() * 1000


def test_location_is_spelled_as_the_catalog_spells_it():
    credential = Credential(id="c-1", secret=AWS, expires_at=NOON)

    assert to_proto(credential, parse_location("s3a://lake/orders")).location == "s3a://lake/orders"
