"""Verifies signed URLs of version 4, from Google's "Signatures" and "Canonical requests".

The path is taken as it came: a client that spells it otherwise than it was signed is refused, as it is at
Google. The parameters are read and written anew, so that their spelling does not matter.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

RSA = "GOOG4-RSA-SHA256"
HMAC = "GOOG4-HMAC-SHA256"
_SIGNATURE = "X-Goog-Signature"
_NAMES = frozenset(
    {
        *("X-Goog-Algorithm", "X-Goog-Credential", "X-Goog-Date"),
        *("X-Goog-Expires", "X-Goog-SignedHeaders", _SIGNATURE),
    }
)
_LONGEST = 604_800
_EARLY = timedelta(minutes=15)


class BadUrl(Exception):
    """A signed URL that is refused, by the code and the status that say so."""

    def __init__(self, code: str, reason: str, status: int) -> None:
        super().__init__(reason)
        self.code = code
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUrl:
    """What a request says of its signature, and what must have been signed for it."""

    algorithm: str
    # A service account's address, or the access ID of an HMAC key.
    signer: str
    scope: tuple[str, ...]
    message: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    valid_from: datetime
    valid_to: datetime

    def check_time(self, now: datetime) -> None:
        if now < self.valid_from - _EARLY:
            raise BadUrl("AccessDenied", "the URL is not valid yet", 403)
        if now >= self.valid_to:
            raise BadUrl("ExpiredToken", "the URL has expired", 400)

    def check_secret(self, secret: str) -> None:
        """Refuse the URL unless it was signed with an HMAC key's secret."""
        key = b"GOOG4" + secret.encode()
        for part in self.scope:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        made = hmac.new(key, self.message, hashlib.sha256).digest()
        if self.algorithm != HMAC or not hmac.compare_digest(made, self.signature):
            raise mismatch()

    def is_by(self, key: rsa.RSAPublicKey) -> bool:
        """Say whether the URL was signed with the private half of a key."""
        try:
            key.verify(self.signature, self.message, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return self.algorithm == RSA


def mismatch() -> BadUrl:
    return BadUrl("SignatureDoesNotMatch", "the signature is not the one that the request needs", 403)


def is_signed(raw_query: str) -> bool:
    return "x-goog-" in raw_query.lower()


def read_signed_url(method: str, raw_path: str, raw_query: str, headers: Mapping[str, str]) -> SignedUrl:
    """Return what the text of a request says, or refuse it."""
    pairs = parse_qsl(raw_query, keep_blank_values=True, strict_parsing=True, errors="strict")
    given = dict(pairs)
    if set(given) != _NAMES or len(pairs) != len(given):
        raise _malformed("other parameters than those of a signed URL")
    signer, scope = _credential(given["X-Goog-Credential"])
    stamp, names = given["X-Goog-Date"], given["X-Goog-SignedHeaders"].split(";")
    valid_from, life = _date(stamp), _number(given["X-Goog-Expires"])
    if scope != (stamp[:8], "auto", "storage", "goog4_request"):
        raise _malformed("the scope is not of that day, or not of storage")
    lower = {name.lower(): value for name, value in headers.items()}
    if "host" not in names or names != sorted(names) or not set(names) <= set(lower):
        raise _malformed("the host is not signed, or a header that is signed is not there")
    signed = sorted((name, value) for name, value in pairs if name != _SIGNATURE)
    canonical = [
        method,
        raw_path,
        "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in signed),
        *(f"{name}:{' '.join(lower[name].split())}" for name in names),
        "",
        ";".join(names),
        "UNSIGNED-PAYLOAD",
    ]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    message = "\n".join([given["X-Goog-Algorithm"], stamp, "/".join(scope), digest])
    return SignedUrl(
        algorithm=given["X-Goog-Algorithm"],
        signer=signer,
        scope=scope,
        message=message.encode(),
        signature=_hexadecimal(given[_SIGNATURE]),
        valid_from=valid_from,
        valid_to=valid_from + timedelta(seconds=life),
    )


def _credential(text: str) -> tuple[str, tuple[str, ...]]:
    signer, *scope = text.split("/")
    return signer, tuple(scope)


def _date(text: str) -> datetime:
    if re.fullmatch(r"\d{8}T\d{6}Z", text, re.ASCII) is None:
        raise _malformed("not the date of a signature")
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _number(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,9}", text) is None or not 1 <= int(text) <= _LONGEST:
        raise _malformed("a URL lives from a second to seven days")
    return int(text)


def _hexadecimal(text: str) -> bytes:
    if re.fullmatch(r"(?:[0-9a-f]{2})+", text) is None:
        raise mismatch()
    return bytes.fromhex(text)


def _malformed(reason: str) -> BadUrl:
    return BadUrl("MalformedSecurityHeader", reason, 400)
