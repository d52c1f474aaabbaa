"""Signed URLs of Google Cloud Storage, version 4: what is signed, and what stands in the URL beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import quote, urlsplit

from gateway.domain.file_path import encode_path
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unsupported
from gateway.ports import Signatures
from vendors.sent_host import as_sent

# Google takes no URL that is to live longer.
LONGEST: Final = timedelta(days=7)

# What a key is good for: objects, wherever their bucket lies.
_PURPOSE: Final = ("auto", "storage", "goog4_request")


class Algorithm(StrEnum):
    RSA = "GOOG4-RSA-SHA256"
    HMAC = "GOOG4-HMAC-SHA256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """All that the URLs of a table have in common in a window."""

    origin: str
    query: str = field(repr=False)
    expires_at: datetime
    # What the day's key is derived by, from an HMAC key's secret.
    scope: tuple[str, ...]
    # Around the path in a canonical request, and before the request's hash in what is signed.
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    head: bytes = field(repr=False)

    def hashes(self, paths: Iterable[bytes]) -> list[bytes]:
        """Return the hash of the canonical request for each path, in hexadecimal."""
        # The beginning is hashed once, and the state copied for each path.
        copy, after = hashlib.sha256(self.before).copy, self.after
        found = []
        for path in paths:
            state = copy()
            state.update(path + after)
            found.append(state.hexdigest().encode())
        return found

    def messages(self, paths: Iterable[bytes]) -> list[bytes]:
        """Return what is to be signed for each path."""
        return [self.head + digest for digest in self.hashes(paths)]

    def filled(self, signatures: Iterable[bytes]) -> Signatures:
        """Return the columns; each signature is what a private key or a secret made of a message."""
        return Signatures(
            origin=self.origin,
            query=self.query,
            signatures="\n".join([signature.hex() for signature in signatures]).encode(),
            expires_at=self.expires_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where recipients reach the buckets, and by which path."""

    scheme: str
    # As clients send it in the header, which is signed.
    host: str
    path: str

    @classmethod
    def at(cls, endpoint: str) -> Place:
        parts = urlsplit(endpoint)
        sent = urlsplit(as_sent(f"{parts.scheme}://{parts.netloc}"))
        return cls(scheme=sent.scheme, host=sent.netloc, path=parts.path.rstrip("/"))

    def directory(self, table: Location) -> str:
        """Return the path of a table's directory, as it is spelled in URLs."""
        below = f"{encode_path(table.path)}/" if table.path else ""
        return f"{self.path}/{table.authority}/{below}"


def new_form(
    place: Place,
    table: Location,
    window: Window,
    *,
    algorithm: Algorithm,
    signer: str,
    longest: timedelta = LONGEST,
) -> Form:
    """Return the form of a table's URLs, as of the window's start.

    The signer is the service account's address or the key's access ID. No URL lives longer than the longest.
    """
    start = window.start.astimezone(UTC).replace(microsecond=0)
    life = (window.expires_at - start) // timedelta(seconds=1)
    if life > LONGEST // timedelta(seconds=1):
        raise Unsupported("URLs of Google Cloud Storage live 7 days at most, and the gateway is set to more")
    life = min(life, longest // timedelta(seconds=1))
    stamp, scope = f"{start:%Y%m%dT%H%M%SZ}", (f"{start:%Y%m%d}", *_PURPOSE)
    directory = place.directory(table)
    # In the order of their names, as they are signed.
    query = (
        f"X-Goog-Algorithm={algorithm}&X-Goog-Credential={quote('/'.join((signer, *scope)), safe='')}"
        f"&X-Goog-Date={stamp}&X-Goog-Expires={life}&X-Goog-SignedHeaders=host"
    )
    return Form(
        origin=f"{place.scheme}://{place.host}{directory}",
        query=f"{query}&X-Goog-Signature=",
        expires_at=start + timedelta(seconds=life),
        scope=scope,
        before=f"GET\n{directory}".encode(),
        after=f"\n{query}\nhost:{place.host}\n\nhost\nUNSIGNED-PAYLOAD".encode(),
        head=f"{algorithm}\n{stamp}\n{'/'.join(scope)}\n".encode(),
    )
