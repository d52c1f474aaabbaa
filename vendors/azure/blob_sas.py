"""SAS for single blobs: for all below a directory they differ by the blob's name and nothing else."""

from __future__ import annotations

from binascii import b2a_base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self
from urllib.parse import quote, unquote_to_bytes, urlencode

from gateway.domain.key import Key
from vendors.azure.account_key import AccountKey
from vendors.azure.delegation_key import API_VERSION, DelegationKey, format_time
from vendors.azure.sas import SasResource, signed_around

READ: Final = "r"

SigningKey = DelegationKey | AccountKey


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSas:
    """What the SAS of all blobs below a directory have in common."""

    # Ends where the signature goes, which is last as the SDK has it.
    query: str
    # What is signed before a blob's name below the directory, and after it.
    head: bytes
    tail: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def of(
        cls,
        directory: SasResource,
        key: SigningKey,
        *,
        starts_at: datetime,
        expires_at: datetime,
        protocol: str = "https",
    ) -> Self:
        """Return the SAS that read the blobs below a directory, or a container, each its own."""
        fields = {
            "st": format_time(starts_at),
            "se": format_time(expires_at),
            "sp": READ,
            "spr": protocol,
            "sv": API_VERSION,
            "sr": "b",
            **key.fields,
        }
        before, after = signed_around(fields)
        return cls(
            query=f"{urlencode(fields, quote_via=quote)}&sig=",
            head=f"{before}{directory.canonical}/".encode(),
            tail=after.encode(),
            secret=key.secret,
        )

    def sign(self, paths: bytes) -> bytes:
        """Return the signature for each percent-encoded path below the directory; both joined by newlines."""
        if not paths:
            return b""
        # Azure signs names as they are stored. No name has a newline in it, so that all are decoded at once.
        names = unquote_to_bytes(paths) if b"%" in paths else paths
        tail = self.tail
        macs = Key(id="", secret=self.secret).macs(self.head, [name + tail for name in names.split(b"\n")])
        # Each ends with a newline; of base64's own characters, a slash needs no escape in a query.
        lines = b"".join(map(b2a_base64, macs))
        return lines[:-1].replace(b"=", b"%3D").replace(b"+", b"%2B")
