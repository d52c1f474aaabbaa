"""What a SAS cannot be confined to, and what was accepted instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gateway.domain.location import Location
from vendors.azure.account import host_fault
from vendors.azure.config import AccountKeyIdentity, AzureOptions

_BLOB_SPELLING: Final = re.compile(r"(?i)wasbs?://|[a-z]+://[^/]*\.blob\.")

_ACCOUNT_KEY: Final = (
    "an account key makes no credential that could be revoked by itself: name another kind of identity, or "
    "set accessModes: [url]"
)
_UNTOLD: Final = (
    "a credential can be confined to a directory only where the account has a hierarchical namespace: "
    "say hierarchicalNamespace: true or false"
)
_FLAT: Final = (
    "an account without a hierarchical namespace cannot confine a credential to a directory: with "
    "containerScope: accept each credential opens the whole container"
)
_BLOB: Final = (
    "the location is spelled for the blob endpoint, whose drivers need a credential for the whole container: "
    "spell it abfss://container@account.dfs…, or say containerScope: accept, and each credential opens the "
    "whole container"
)


def opens_container(options: AzureOptions, location: Location) -> bool:
    """Tell whether a credential for the location is one for its whole container."""
    return location.is_root or options.container_scope == "accept"


def scope_faults(options: AzureOptions, location: Location) -> Sequence[str]:
    """Return why the location cannot have a credential; the same for all its spellings."""
    if fault := host_fault(location):
        return [fault]
    if isinstance(options.identity, AccountKeyIdentity):
        return [_ACCOUNT_KEY]
    if opens_container(options, location) or options.hierarchical_namespace:
        return []
    return [_FLAT if options.hierarchical_namespace is False else _UNTOLD]


def spelling_faults(options: AzureOptions, location: Location) -> Sequence[str]:
    """Return why recipients could not use a credential with the location as it is spelled to them."""
    if not opens_container(options, location) and _BLOB_SPELLING.match(location.text):
        return [_BLOB]
    return []
