"""Credentials in the words of object_store, which delta-rs, Polars and others read with."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from sluice_recipient.credential import AwsKeys, AzureSas, Credential, GcpToken
from sluice_recipient.errors import NotUsable

# Found before anything that can be renewed, by all programs that look at the environment at all.
AMBIENT: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
)


def static_options(credential: Credential) -> dict[str, str]:
    """Return options that hold the credential itself, and are good until it expires."""
    match credential.secret:
        case AwsKeys() as keys:
            return aws_place(keys) | {
                "aws_access_key_id": keys.access_key_id,
                "aws_secret_access_key": keys.secret_access_key,
                "aws_session_token": keys.session_token,
            }
        case AzureSas(sas_token=token):
            return _azure_place(credential.location) | {"azure_storage_sas_key": token}
        case GcpToken(oauth_token=token):
            return {"google_bearer_token": token}


def aws_place(keys: AwsKeys) -> dict[str, str]:
    """Return the options that say where the store is."""
    # Named in full: what is left out is taken from the environment, and belongs to another store there.
    place = {"aws_skip_signature": "false"} | ({"aws_region": keys.region} if keys.region else {})
    if endpoint := keys.endpoint:
        # In capitals: with this very name set, delta-rs does not ask the SDK's own chain of identities.
        place["AWS_ENDPOINT_URL"] = place["aws_endpoint_url_s3"] = endpoint
        place["aws_virtual_hosted_style_request"] = "false"
        place["aws_allow_http"] = str(endpoint.startswith("http://")).lower()
    return place


def renewed_place(keys: AwsKeys) -> dict[str, str]:
    """Return the place in the form with which delta-rs asks an address for credentials."""
    if not keys.endpoint and not keys.region:
        raise NotUsable("the gateway does not tell the bucket's region")
    return aws_place(replace(keys, endpoint=keys.endpoint or _aws_endpoint(keys.region or "")))


def container_options(uri: str, token_file: str) -> dict[str, str]:
    """Return options that name an address to fetch credentials from."""
    return {
        "aws_container_credentials_full_uri": uri,
        "aws_container_authorization_token_file": token_file,
    }


def to_s3(location: str) -> str:
    """Return the location with the one scheme that all engines outside Hadoop know for S3."""
    scheme, separator, rest = location.partition("://")
    return f"s3://{rest}" if separator and scheme in {"s3a", "s3n"} else location


def scheme_of(location: str) -> str:
    return urlsplit(location).scheme


def _aws_endpoint(region: str) -> str:
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"https://s3.{region}.amazonaws.com{suffix}"


def _azure_place(location: str) -> dict[str, str]:
    # abfss://container@account.dfs.core.windows.net/path
    account = (urlsplit(location).hostname or "").partition(".")[0]
    return {"azure_storage_account_name": account} if account else {}
