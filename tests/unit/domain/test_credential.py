from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.domain.credential import AwsTempCredentials, AzureUserDelegationSas, Credential, GcpOauthToken


@pytest.mark.parametrize(
    "secret",
    [
        AwsTempCredentials(access_key_id="AKIA", secret_access_key="hush", session_token="hush"),
        AzureUserDelegationSas(sas_token="hush"),
        GcpOauthToken(oauth_token="hush"),
    ],
)
def test_secrets_are_not_printed(secret):
    credential = Credential(id="c-1", secret=secret, expires_at=datetime(2025, 6, 1, tzinfo=UTC))

    assert "hush" not in repr(credential)
    assert "c-1" in repr(credential)
