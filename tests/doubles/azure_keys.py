"""User delegation keys, from Microsoft's "Get User Delegation Key"."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from xml.etree import ElementTree as ET

from tests.doubles.azure_sas import AccessDenied, DelegationKey, parse_time

_LONGEST = timedelta(days=7)
_TAGS = ("SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService", "SignedVersion", "Value")


class DelegationKeys:
    """The keys that an account gave out and has not revoked."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, ...], DelegationKey] = {}
        self._secret = secrets.token_bytes(32)

    def issue(self, object_id: str, tenant: str, times: tuple[str, str], version: str) -> DelegationKey:
        start, expiry = times
        fields = (object_id, tenant, start, expiry, "b", version)
        # The same for the same question, so that two who ask in one second do not spoil each other's key.
        value = hmac.new(self._secret, "\n".join(fields).encode(), hashlib.sha256).digest()
        key = DelegationKey(
            oid=object_id,
            tid=tenant,
            start=start,
            expiry=expiry,
            service="b",
            version=version,
            value=base64.b64encode(value).decode(),
        )
        self._keys[key.fields] = key
        return key

    def find(self, fields: tuple[str, ...]) -> DelegationKey:
        if fields not in self._keys:
            raise AccessDenied("AuthenticationFailed", "no such user delegation key")
        return self._keys[fields]

    def revoke(self) -> None:
        self._keys.clear()
        self._secret = secrets.token_bytes(32)


def read_times(body: bytes, now: datetime) -> tuple[str, str]:
    """Return the start and the end that a request for a key asks for, if the service would give them."""
    try:
        info = ET.fromstring(body)
        start, expiry = (parse_time(info.findtext(name) or "") for name in ("Start", "Expiry"))
    except (ET.ParseError, AccessDenied):
        raise AccessDenied("InvalidXmlDocument", "no KeyInfo with Start and Expiry", 400) from None
    if info.tag != "KeyInfo" or not start < expiry or expiry <= now:
        raise AccessDenied("InvalidXmlNodeValue", "a key that ends before it begins, or already has", 400)
    if expiry > now + _LONGEST or expiry - start > _LONGEST:
        raise AccessDenied("InvalidXmlNodeValue", "a key of more than seven days", 400)
    return start.strftime("%Y-%m-%dT%H:%M:%SZ"), expiry.strftime("%Y-%m-%dT%H:%M:%SZ")


def to_xml(key: DelegationKey) -> bytes:
    root = ET.Element("UserDelegationKey")
    for tag, value in zip(_TAGS, (*key.fields, key.value), strict=True):
        ET.SubElement(root, tag).text = value
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text
