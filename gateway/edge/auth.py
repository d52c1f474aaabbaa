"""Who presents what: a bearer token in the Authorization header, and nowhere else."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from aiohttp import hdrs
from multidict import CIMultiDictProxy

from gateway.errors import Unauthenticated

# What an anonymous caller presents to the catalog: the hash of no token, which no header can hold.
ANONYMOUS: Final = hashlib.sha256(b"").digest()

# Any printable token: what a configuration of the reference server may hold, not only RFC 6750's alphabet.
_BEARER: Final = re.compile(r"bearer +([\x21-\x7e]+) *", re.IGNORECASE)


def token_sha256(headers: CIMultiDictProxy[str]) -> bytes:
    """Return the hash of the presented token, which goes no further than this."""
    values = headers.getall(hdrs.AUTHORIZATION, ())
    if not values:
        raise Unauthenticated("a bearer token is needed: send it as 'Authorization: Bearer <token>'")
    match = _BEARER.fullmatch(values[0])
    if match is None or len(values) > 1:
        raise Unauthenticated("the Authorization header must be one 'Bearer <token>'")
    return hashlib.sha256(match[1].encode()).digest()
