from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.credential import container_json, credential_json
from gateway.errors import Unsupported
from gateway.v1.catalog_pb2 import Table
from gateway.v1.vending_pb2 import AwsTempCredentials, AzureUserDelegationSas, GcpOauthToken, IssueResponse

AWS = AwsTempCredentials(
    access_key_id="k", secret_access_key="s", session_token="t", region="r", endpoint="e"
)
KINDS = {
    "awsTempCredentials": IssueResponse(location="l", aws=AWS, expires_at_ms=5),
    "azureUserDelegationSas": IssueResponse(
        location="l", azure=AzureUserDelegationSas(sas_token="s"), expires_at_ms=5
    ),
    "gcpOauthToken": IssueResponse(location="l", gcp=GcpOauthToken(oauth_token="o"), expires_at_ms=5),
}


@pytest.mark.parametrize(("block", "issued"), KINDS.items(), ids=list(KINDS))
def test_there_is_one_block_and_it_is_the_stores(block: str, issued: IssueResponse) -> None:
    for shown in (True, False):
        answer = credential_json(issued, Table(), region_and_endpoint=shown)
        assert set(answer) == {"credentials"}
        assert list(answer["credentials"]) == ["location", block, "expirationTime"]
        assert ("region" in answer["credentials"][block]) == (block.startswith("aws") and shown)


def test_only_keys_are_repeated_as_those_of_r2() -> None:
    table = Table(r2_credentials=True)
    for block, issued in KINDS.items():
        answer = credential_json(issued, table, region_and_endpoint=True)["credentials"]
        assert ("r2Credentials" in answer) == (block == "awsTempCredentials")
    aws = credential_json(KINDS["awsTempCredentials"], table, region_and_endpoint=True)["credentials"]
    assert aws["r2Credentials"] == {"accessKeyId": "k", "secretAccessKey": "s", "sessionToken": "t"}


@pytest.mark.parametrize("block", ["azureUserDelegationSas", "gcpOauthToken"])
def test_aws_tools_are_given_keys_or_nothing(block: str) -> None:
    with pytest.raises(Unsupported, match="temporary-table-credentials"):
        container_json(KINDS[block])


@given(milliseconds=st.integers(1, 4_102_444_800_000))
def test_an_expiration_is_in_whole_seconds_and_never_later_than_the_truth(milliseconds: int) -> None:
    text = container_json(IssueResponse(aws=AWS, expires_at_ms=milliseconds))["Expiration"]
    told = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert 0 <= milliseconds - told.timestamp() * 1000 < 1000
