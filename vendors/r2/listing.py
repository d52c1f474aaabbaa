"""Lists keys of a bucket by any prefix, which obstore cannot: it lists whole directories only."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote, unquote_plus, urlsplit

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Clock
from vendors.http import Call, Reply, Request
from vendors.obstore_error import StoreRefused, judge
from vendors.obstore_probe import MOST_NAMES
from vendors.r2.config import REGION
from vendors.r2.identity import Identity
from vendors.sigv4 import credential_scope, signing_key
from vendors.xml import parse_xml

_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_CODE: Final = re.compile(r"[A-Za-z0-9.]{1,60}")
_OK: Final = 200


class Listing:
    """ListObjectsV2, signed by Signature Version 4."""

    def __init__(self, *, endpoint: str, bucket: str, identity: Identity, call: Call, clock: Clock) -> None:
        self._endpoint = endpoint
        self._bucket = bucket
        self._identity = identity
        self._call = call
        self._clock = clock

    async def __call__(self, credential: Credential | None, prefix: str) -> Sequence[str]:
        """Return the first keys that begin with the prefix; raise ``StoreRefused`` for a refusal."""
        keys = await self._keys(credential)
        reply = await self._call(list_request(self._endpoint, self._bucket, prefix, keys, self._clock()))
        if reply.status != _OK:
            raise StoreRefused(judge(str(reply.status), _code(reply)))
        return _names(reply)

    async def _keys(self, credential: Credential | None) -> AwsTempCredentials:
        if credential is None:
            own = await self._identity.parent()
            return AwsTempCredentials(
                access_key_id=own.access_key_id, secret_access_key=own.secret_access_key, session_token=""
            )
        if not isinstance(credential.secret, AwsTempCredentials):
            raise Unsupported("this storage's credentials are keys of S3")
        return credential.secret


def list_request(endpoint: str, bucket: str, prefix: str, keys: AwsTempCredentials, now: datetime) -> Request:
    """Return the signed request for the first keys that begin with a prefix."""
    # Signed here: an SDK that signs would be installed for R2 for the sake of this one request.
    query = _query(
        {
            "encoding-type": "url",
            "list-type": "2",
            "max-keys": str(MOST_NAMES),
            "prefix": prefix,
        }
    )
    path = f"/{quote(bucket, safe='')}"
    stamp = f"{now:%Y%m%dT%H%M%SZ}"
    headers = {"host": urlsplit(endpoint).netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": stamp}
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    canonical = "\n".join(["GET", path, query, *_lines(headers), "", ";".join(headers), _EMPTY])
    scope = credential_scope(stamp[:8], REGION)
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = signing_key(keys.secret_access_key, stamp[:8], REGION)
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={keys.access_key_id}/{scope}, "
        f"SignedHeaders={';'.join(headers)}, Signature={signature}"
    )
    return Request(
        method="GET", url=f"{endpoint}{path}?{query}", headers={**headers, "authorization": authorization}
    )


def _query(parameters: Mapping[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(parameters.items()))


def _lines(headers: Mapping[str, str]) -> list[str]:
    return [f"{name}:{value}" for name, value in headers.items()]


def _names(reply: Reply) -> list[str]:
    root = parse_xml(reply.body)
    if root.tag != "ListBucketResult":
        # An empty listing is a finding; this is none.
        raise Unavailable("the storage's provider answered with something that is no listing")
    keys = [key.text or "" for key in root.iterfind("Contents/Key")]
    return [unquote_plus(key) for key in keys] if root.findtext("EncodingType") == "url" else keys


def _code(reply: Reply) -> str:
    """Return the store's own name for a refusal; its words may repeat the session token."""
    try:
        code = parse_xml(reply.body).findtext("Code") or ""
    except Unavailable:
        return ""
    return code if _CODE.fullmatch(code) else ""
