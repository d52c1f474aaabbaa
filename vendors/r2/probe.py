"""Tries what a credential opens in a bucket of R2."""

from __future__ import annotations

from functools import partial

from gateway.ports import Clock
from vendors.http import Call
from vendors.obstore_probe import ObstoreProbe
from vendors.r2.config import R2Options
from vendors.r2.identity import Identity
from vendors.r2.listing import Listing
from vendors.r2.reader import open_own, open_with


def open_probe(options: R2Options, bucket: str, identity: Identity, call: Call, clock: Clock) -> ObstoreProbe:
    """Return a probe that lists by any prefix, with the slash or without."""
    listing = Listing(endpoint=options.endpoint_url, bucket=bucket, identity=identity, call=call, clock=clock)
    return ObstoreProbe(
        open_own(options, bucket, identity, clock), partial(open_with, options, bucket), list_keys=listing
    )
