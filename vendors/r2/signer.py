"""Signs URLs of objects in R2 by the keys of the parent token."""

from __future__ import annotations

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location
from gateway.domain.window import Window
from vendors.r2.config import REGION, R2Options
from vendors.r2.identity import Identity
from vendors.s3_address import Place
from vendors.s3_signer import S3Signer
from vendors.sent_host import as_sent


def open_signer(options: R2Options, prefix: Location, identity: Identity) -> S3Signer:
    """Return a signer that calls nobody: the keys have no end of their own."""

    async def find_place() -> Place:
        return Place(url=as_sent(options.endpoint_url), bucket_in_path=prefix.authority, region=REGION)

    async def obtain(window: Window) -> Credential:
        parent = await identity.parent()
        secret = AwsTempCredentials(
            access_key_id=parent.access_key_id,
            secret_access_key=parent.secret_access_key,
            session_token="",
        )
        return Credential(id=parent.access_key_id, secret=secret, expires_at=window.expires_at)

    return S3Signer(prefix=prefix, find_place=find_place, obtain=obtain, has_sessions=False)
