from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.vendors import find_vendor
from gateway.ports import OptionFault
from tests.hypothesis_profiles import examples
from tests.unit.vendors.words import told

SECRET = "hunter2-and-more"
VENDORS = ("aws", "azure", "gcp", "local", "r2", "s3")

KEYS = st.sampled_from(
    [
        "identity",
        "kind",
        "keys",
        "accessKeyId",
        "accesKeyId",
        "secretAccessKey",
        "sessionToken",
        "assumeRole",
        "arn",
        "role",
        "externalId",
        "profile",
        "name",
        "file",
        "value",
        "region",
        "endpoint",
        "stsEndpoint",
        "capabilities",
        "inlinePolicy",
        "shortestSeconds",
        "allowHttp",
        "kmsKeys",
        "revocation",
        "putRolePolicy",
        "clientSecret",
        "tenantId",
        "clockSkew",
        "keyLife",
        "containerScope",
        "serviceAccount",
        "key",
        "keyFile",
        "impersonate",
        "delegates",
        "universeDomain",
        "accountId",
        "jurisdiction",
        "mint",
        "apiToken",
        "owner",
        "deleteParentToken",
        "zzz",
    ]
)
KINDS = st.sampled_from(
    [
        "keys",
        "profile",
        "webIdentity",
        "chain",
        "clientSecret",
        "managedIdentity",
        "workloadIdentity",
        "serviceAccount",
        "metadata",
        "kyes",
    ]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.just(SECRET), st.just("https://a"), KINDS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=12,
)
IDENTITIES = st.builds(
    lambda kind, rest: {**rest, "kind": kind}, KINDS, st.dictionaries(KEYS, VALUES, max_size=5)
)
OPTIONS = st.builds(
    lambda identity, rest: {**rest, "identity": identity},
    st.one_of(IDENTITIES, VALUES),
    st.dictionaries(KEYS, VALUES, max_size=6),
)


def stands(fault: OptionFault, options: object) -> bool:
    """Tell whether a fault's path is one of the options, but for a last step that is missing there."""
    for number, step in enumerate(fault.path, start=1):
        is_there = step in options if isinstance(options, Mapping) else isinstance(options, list)
        if not is_there:
            return number == len(fault.path) or options is None
        options = options[step]  # type: ignore[index]
    return True


@pytest.mark.parametrize("name", VENDORS)
@settings(max_examples=examples(0.6))
@given(options=OPTIONS)
def test_faults_stand_at_their_options_once_and_show_no_value(name, options):
    faults = find_vendor(name).check(options)

    assert all(stands(fault, options) for fault in faults), told(faults)
    assert len({fault.path for fault in faults}) == len(faults)
    assert SECRET not in " ".join(told(faults))
    assert not [fault for fault in faults if "not allowed here" in fault.message]
