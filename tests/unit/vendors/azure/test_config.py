from __future__ import annotations

from datetime import timedelta

from tests.cases import each_case
from tests.unit.vendors.words import told
from vendors.azure.config import ClientSecretIdentity, check, parse

CHAIN = {"identity": {"kind": "chain"}}
SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"


@each_case(
    "identity",
    [
        {"kind": "clientSecret", "tenantId": "t", "clientId": "c", "clientSecret": {"value": "s"}},
        {"kind": "clientSecret", "tenantId": "t", "clientId": "c", "clientSecret": {"file": "/run/secret"}},
        {"kind": "managedIdentity"},
        {"kind": "managedIdentity", "clientId": "c"},
        {"kind": "workloadIdentity"},
        {"kind": "workloadIdentity", "tenantId": "t", "clientId": "c", "tokenFile": "/run/token"},
        {"kind": "chain"},
        {"kind": "accountKey", "accountKey": {"value": "a2V5"}},
        {"kind": "accountKey", "accountKey": {"file": "/run/key"}},
    ],
)
def test_each_kind_of_identity_is_taken(identity):
    assert check({"identity": identity}) == []
    assert parse({"identity": identity}).identity.kind == identity["kind"]


@each_case("given", [{}, {"identity": {}}, {"identity": "chain"}, {"identity": {"clientId": "c"}}])
def test_entry_without_an_identity_is_told_the_kinds(given):
    (fault,) = told(check(given))

    assert fault.startswith("identity")
    assert "clientSecret, managedIdentity, workloadIdentity, chain, accountKey" in fault


def test_unknown_kind_is_told_the_others():
    (fault,) = told(check({"identity": {"kind": "sharedKey", "value": "k"}}))

    assert fault.startswith("identity.kind: must be one of clientSecret, ")


@each_case("value", ["", "hush hush", "hush!", "hüsh", "aHVzaA==x"])
def test_account_key_that_is_none_is_told_without_it(value):
    (fault,) = told(check({"identity": {"kind": "accountKey", "accountKey": {"value": value}}}))

    assert fault.startswith("identity.accountKey.value: must be a key of the storage account")
    assert "hush" not in fault


def test_account_key_has_nothing_to_revoke():
    identity = {"kind": "accountKey", "accountKey": {"value": "a2V5"}}
    revocation = {"subscription": SUBSCRIPTION, "resourceGroup": "g"}
    (fault,) = told(check({"identity": identity, "revocation": revocation}))

    assert fault.startswith("revocation: an account key")


def test_account_key_is_not_shown():
    options = parse({"identity": {"kind": "accountKey", "accountKey": {"value": "aHVzaA=="}}})

    assert "aHVzaA" not in repr(options)


def test_entry_that_nobody_wrote_uses_the_chain():
    options = parse({})

    assert options.identity.kind == "chain"
    assert options.hierarchical_namespace is None


@each_case(
    ("given", "words"),
    [
        ({"unknown": 1}, "unknown: unknown option; known are identity, authority,"),
        ({"blobEndpoint": "http://storage.example"}, "needs https"),
        ({"blobEndpoint": "http://127.0.0.1.example"}, "needs https"),
        ({"blobEndpoint": "http://localhost@evil.example"}, "an endpoint is an address"),
        ({"blobEndpoint": "https://h/?sv=1"}, "https://"),
        ({"blobEndpoint": "ftp://127.0.0.1"}, "https://"),
        ({"authority": "http://127.0.0.1"}, "https://"),
        ({"authority": "https://user:password@login"}, "https://"),
        (
            {"hierarchicalNamespace": "yes"},
            "hierarchicalNamespace: must be true or false; did you mean true?",
        ),
        ({"containerScope": True}, "containerScope: must be accept"),
        ({"containerScope": "refuse"}, "containerScope"),
        ({"clockSkew": "2h"}, "clockSkew: must be at most 1h"),
        ({"clockSkew": "soon"}, "clockSkew"),
        ({"keyLife": "7d"}, "keyLife: must be from 10m to 6d"),
        ({"keyLife": "1m"}, "keyLife"),
        ({"keyLife": True}, "keyLife"),
        (
            {"revocation": {"subscription": "mine", "resourceGroup": "g"}},
            "revocation.subscription: must be a GUID",
        ),
        (
            {"revocation": {"subscription": SUBSCRIPTION, "resourceGroup": "a/b"}},
            "revocation.resourceGroup: must",
        ),
    ],
)
def test_fault_is_named(given, words):
    (fault,) = told(check({**CHAIN, **given}))

    assert words in fault


@each_case(
    "endpoint",
    [
        "https://account.privatelink.example",
        "http://127.0.0.1:10000/account",
        "http://[::1]:1",
        "http://localhost",
    ],
)
def test_endpoint_loses_its_trailing_slash(endpoint):
    assert check({**CHAIN, "blobEndpoint": endpoint}) == []
    assert parse({**CHAIN, "blobEndpoint": f"{endpoint}/"}).blob_endpoint == endpoint


def test_spans_are_spelled_as_in_the_rest_of_the_file():
    options = parse({**CHAIN, "clockSkew": 90, "keyLife": "2d"})

    assert (options.clock_skew, options.key_life) == (timedelta(seconds=90), timedelta(days=2))


def test_no_skew_is_a_choice():
    assert parse({**CHAIN, "clockSkew": "0s"}).clock_skew == timedelta(0)


def test_fault_and_options_show_no_secret():
    identity = {"kind": "clientSecret", "tenantId": "t", "clientId": "c", "clientSecret": {"value": "hush"}}
    broken = {"identity": {**identity, "clientSecret": {"value": "hush", "file": "hush"}}}

    assert "hush" not in repr(parse({"identity": identity}))
    assert "hush" not in "".join(told(check(broken)))
    assert check(broken)


def test_secret_is_read_from_its_file_each_time(tmp_path):
    file = tmp_path / "secret"
    given = {"kind": "clientSecret", "tenantId": "t", "clientId": "c", "clientSecret": {"file": str(file)}}
    identity = parse({"identity": given}).identity
    assert isinstance(identity, ClientSecretIdentity)

    file.write_text("one\n")
    assert identity.client_secret.read() == "one"
    file.write_text("two\n")
    assert identity.client_secret.read() == "two"
