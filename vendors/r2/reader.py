"""Opens buckets of R2 through obstore, by keys that are given and never by the environment's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from obstore.store import S3Store

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.errors import Unsupported
from gateway.ports import Clock
from vendors.obstore_client import client_options, retry_config
from vendors.r2.config import REGION, R2Options
from vendors.r2.identity import Identity
from vendors.s3_spark import S3Reach

if TYPE_CHECKING:
    from obstore.store import S3Credential, S3CredentialProvider

# obstore asks again some minutes before this is over.
_KEPT: Final = timedelta(minutes=10)


def open_own(options: R2Options, bucket: str, identity: Identity, clock: Clock) -> S3Store:
    """Return the bucket as the storage's own identity sees it."""

    async def keys() -> S3Credential:
        parent = await identity.parent()
        return {
            "access_key_id": parent.access_key_id,
            "secret_access_key": parent.secret_access_key,
            "token": None,
            # Asked for again and again, so that a replaced secret is soon used.
            "expires_at": clock() + _KEPT,
        }

    return _open(options, bucket, keys)


def open_with(options: R2Options, bucket: str, credential: Credential) -> S3Store:
    """Return the bucket as a recipient with this credential sees it."""
    secret = credential.secret
    if not isinstance(secret, AwsTempCredentials):
        raise Unsupported("this storage's credentials are keys of S3")

    def keys() -> S3Credential:
        return {
            "access_key_id": secret.access_key_id,
            "secret_access_key": secret.secret_access_key,
            "token": secret.session_token,
            "expires_at": None,
        }

    return _open(options, bucket, keys)


async def find_reach(options: R2Options, identity: Identity) -> S3Reach:
    """Return how others than obstore reach the buckets as the storage's own identity."""
    parent = await identity.parent()
    return S3Reach(
        endpoint=options.endpoint_url,
        region=REGION,
        path_style=True,
        access_key_id=parent.access_key_id,
        secret_access_key=parent.secret_access_key,
    )


def _open(options: R2Options, bucket: str, keys: S3CredentialProvider) -> S3Store:
    # A provider, because obstore would add a session token of the environment to keys that have none; and
    # the settings, because it would take from there what is not said here.
    return S3Store(
        bucket,
        config={
            "endpoint": options.endpoint_url,
            "region": REGION,
            "skip_signature": False,
            "virtual_hosted_style_request": False,
            "conditional_put": "etag",
        },
        client_options=client_options(allow_http=options.endpoint_url.startswith("http://")),
        retry_config=retry_config(),
        credential_provider=keys,
    )
