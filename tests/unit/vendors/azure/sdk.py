"""What Azure's own SDK makes, in the version of the service that we sign for."""

from __future__ import annotations

import base64
import hmac
from typing import Any
from urllib.parse import quote

from azure.storage.blob._shared.models import UserDelegationKey
from azure.storage.blob._shared_access_signature import BlobSharedAccessSignature

from vendors.azure.account_key import AccountKey
from vendors.azure.delegation_key import DelegationKey

_VERSION = "2023-11-03"
# Lines that versions after ours put into what is signed: two after the correlation id, two after the scope.
_LATER_LINES = (22, 21, 14, 13)


def sdk_sas(name: str, key: DelegationKey | AccountKey, **terms: Any) -> str:
    """Return the SDK's SAS for a blob, or a directory, of the container ``tables`` in ``lakeaccount``."""
    if isinstance(key, AccountKey):
        return _sas(BlobSharedAccessSignature("lakeaccount", account_key=key.text), name, terms)[0]
    lent = UserDelegationKey()
    lent.signed_oid, lent.signed_tid = key.oid, key.tid
    lent.signed_start, lent.signed_expiry = key.start, key.expiry
    lent.signed_service, lent.signed_version = key.service, key.version
    lent.value = base64.b64encode(key.secret).decode()
    token, text = _sas(BlobSharedAccessSignature("lakeaccount", user_delegation_key=lent), name, terms)
    lines = text.split("\n")
    for number in _LATER_LINES:
        assert lines.pop(number) == ""
    signature = base64.b64encode(hmac.digest(key.secret, "\n".join(lines).encode(), "sha256")).decode()
    # As the SDK encodes what it puts into a query.
    return f"{token.rpartition('&sig=')[0]}&sig={quote(signature)}"


def _sas(factory: BlobSharedAccessSignature, name: str, terms: dict[str, Any]) -> tuple[str, str]:
    factory.x_ms_version = _VERSION
    signed: list[str] = []
    token = factory.generate_blob("tables", name, sts_hook=signed.append, **terms)
    return token, signed[0]
