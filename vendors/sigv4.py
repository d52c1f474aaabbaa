"""Signature Version 4 in a URL's query: GETs that are signed ahead, a whole batch at a time."""

from __future__ import annotations

import hashlib
import hmac
from binascii import b2a_hex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from gateway.domain.credential import AwsTempCredentials
from gateway.domain.key import Key

# S3 and all that speak its language refuse a URL that says more.
LONGEST: Final = timedelta(days=7)

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_UNRESERVED: Final = "-._~"
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presigning:
    """What the URLs of a batch have in common."""

    # As clients send it in the header of that name.
    host: str
    region: str
    keys: AwsTempCredentials
    signed_at: datetime
    life: timedelta

    @property
    def stamp(self) -> str:
        return f"{self.signed_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"

    @property
    def scope(self) -> str:
        return credential_scope(self.stamp[:8], self.region)


def shared_query(terms: Presigning) -> str:
    """Return what stands between a URL's question mark and its signature, in the order of the SDK."""
    token = terms.keys.session_token
    parameters = [
        *_before_token(terms),
        "X-Amz-SignedHeaders=host",
        # Behind its place in the alphabet, by which it is signed.
        *([_token(token)] if token else []),
        "X-Amz-Signature=",
    ]
    return "&".join(parameters)


def sign_urls(terms: Presigning, directory: str, paths: Iterable[bytes]) -> bytes:
    """Return a signature for each path below the directory, joined by newlines.

    Both are percent-encoded as they stand in the URL; the directory begins and ends with a slash.
    """
    day = terms.stamp[:8]
    key = Key(id=day, secret=signing_key(terms.keys.secret_access_key, day, terms.region))
    head = f"{_ALGORITHM}\n{terms.stamp}\n{terms.scope}\n".encode()
    macs = key.macs(head, _request_hashes(terms, directory, paths))
    return b2a_hex(b"".join(macs), b"\n", len(macs[0])) if macs else b""


@lru_cache(maxsize=256)
def signing_key(secret: str, day: str, region: str) -> bytes:
    """Return the key that signs requests to S3 in a region for a day, written ``20261116``."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def credential_scope(day: str, region: str) -> str:
    return f"{day}/{region}/s3/aws4_request"


def _request_hashes(terms: Presigning, directory: str, paths: Iterable[bytes]) -> Iterator[bytes]:
    token = terms.keys.session_token
    query = [*_before_token(terms), *([_token(token)] if token else []), "X-Amz-SignedHeaders=host"]
    lines = ["", "&".join(query), f"host:{terms.host}", "", "host", "UNSIGNED-PAYLOAD"]
    rest = "\n".join(lines).encode()
    # What stands before the path is hashed once, and its state copied.
    copy = hashlib.sha256(f"GET\n{directory}".encode()).copy
    for path in paths:
        request = copy()
        request.update(path + rest)
        yield b2a_hex(request.digest())


def _before_token(terms: Presigning) -> list[str]:
    return [
        f"X-Amz-Algorithm={_ALGORITHM}",
        f"X-Amz-Credential={_quote(f'{terms.keys.access_key_id}/{terms.scope}')}",
        f"X-Amz-Date={terms.stamp}",
        f"X-Amz-Expires={terms.life // _SECOND}",
    ]


def _token(token: str) -> str:
    return f"X-Amz-Security-Token={_quote(token)}"


def _quote(text: str) -> str:
    return quote(text, safe=_UNRESERVED)
