"""What a storage's URLs are signed with, by its options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.ports import Clock, Signer
from vendors.gcp.blob_signer import BlobSigner
from vendors.gcp.chain_signer import ChainSigner, find_signer
from vendors.gcp.config import Account, GcpOptions, HmacOptions, ServiceAccountOptions
from vendors.gcp.hmac_signer import HmacSigner
from vendors.gcp.identity import Identity, Transport
from vendors.gcp.pause import Pause
from vendors.gcp.rsa_signer import RsaSigner
from vendors.gcp.service_key import KeyReader, ServiceKey
from vendors.gcp.sign_blob import SignBlob
from vendors.gcp.v4 import Place
from vendors.http import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Signers:
    """Makes a storage's signer out of what the storage has opened."""

    options: GcpOptions
    identity: Identity
    transport: Transport
    call: Call
    clock: Clock
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def by_options(self) -> Signer | None:
        """Return the signer that the options mean; None when they do not say whom to sign as."""
        options, account = self.options, self.options.signing_account
        if isinstance(options.signing, HmacOptions):
            return HmacSigner(options.signing, self._place)
        # Before the key: the URLs then open what the identity itself reads.
        if account is not None:
            return self._signing_as(account)
        if isinstance(options.identity, ServiceAccountOptions):
            return RsaSigner(read_key=KeyReader(options.identity.read_key).read, place=self._place)
        return None

    def by_surroundings(self) -> Signer:
        """Return a signer that finds out by itself whom it signs as."""
        find = partial(find_signer, self.options.identity, self.transport)
        return ChainSigner(find=find, make=self._signing_as)

    def _signing_as(self, signer: ServiceKey | Account) -> Signer:
        if isinstance(signer, ServiceKey):
            return RsaSigner(read_key=lambda: signer, place=self._place)
        blobs = SignBlob(
            account=signer,
            token=self._source().token,
            call=self.call,
            url=self.options.iam_url,
            clock=self.clock,
            pause=Pause(self.clock, self.sleep),
        )
        return BlobSigner(blobs=blobs, place=self._place)

    def _source(self) -> Identity:
        """Return the identity itself: to sign as an account takes the role that impersonating it takes."""
        if self.options.identity.impersonate is None:
            return self.identity
        return Identity(self.options.without_impersonation(), self.transport, self.clock)

    @property
    def _place(self) -> Place:
        return Place.at(self.options.storage_url)


def why_unsigned(options: GcpOptions) -> Sequence[str]:
    """Return why the options let no URL be signed, in words."""
    names_signer = options.signing is not None or options.signing_account is not None
    if names_signer or isinstance(options.identity, ServiceAccountOptions):
        return []
    return [
        "no service account is known to sign URLs as: name it in options.signing, "
        "as {kind: signBlob, serviceAccount: NAME@PROJECT.iam.gserviceaccount.com}, "
        "or in options.identity.impersonate"
    ]
