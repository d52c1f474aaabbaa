from __future__ import annotations

from pathlib import Path

from tests.cases import each_case
from tests.unit.vendors.words import told
from vendors.gcp.config import (
    ChainOptions,
    GcpOptions,
    HmacOptions,
    ImpersonateOptions,
    MetadataOptions,
    ServiceAccountOptions,
    SignBlobOptions,
    WorkloadIdentityOptions,
    check,
    parse,
)

CHAIN = {"kind": "chain"}
SHARER = "a@b.iam.gserviceaccount.com"
HMAC = {"kind": "hmac", "accessId": "GOOG1EXAMPLE", "secret": {"file": "/secret"}}


def identity(**options: object) -> dict[str, object]:
    return {"identity": options}


@each_case(
    "options",
    [
        identity(kind="chain"),
        identity(kind="metadata"),
        identity(kind="metadata", serviceAccount="a@b.iam.gserviceaccount.com"),
        identity(kind="serviceAccount", keyFile="/key.json"),
        identity(kind="serviceAccount", key={"file": "/key.json"}),
        identity(kind="workloadIdentity", configFile="/config.json"),
        identity(kind="chain", impersonate={"serviceAccount": "a@b.iam.gserviceaccount.com"}),
        {"identity": CHAIN, "storageEndpoint": "http://127.0.0.1:4443", "stsEndpoint": "http://[::1]:1"},
        {"identity": CHAIN, "universeDomain": "example-universe.goog", "caFile": "/ca.pem"},
        {"identity": CHAIN, "signing": HMAC},
        {"identity": CHAIN, "signing": {**HMAC, "secret": {"value": "hush"}}},
        {"identity": CHAIN, "signing": {"kind": "signBlob", "serviceAccount": SHARER, "delegates": [SHARER]}},
        {"identity": {**CHAIN, "impersonate": {"serviceAccount": SHARER}}, "signing": {"kind": "signBlob"}},
        {"identity": {"kind": "metadata", "serviceAccount": SHARER}, "signing": {"kind": "signBlob"}},
    ],
)
def test_options_are_fine(options):
    assert check(options) == []


@each_case("options", [{}, {"identity": None}, {"identity": {}}, identity(kind="magic")])
def test_entry_without_an_identity_is_told_the_kinds(options):
    (fault,) = told(check(options))

    assert fault.startswith("identity")
    assert "one of serviceAccount, workloadIdentity, metadata, chain" in fault


@each_case(
    ("options", "fault"),
    [
        (identity(kind="serviceAccount"), "identity: give either keyFile or key"),
        (
            identity(kind="serviceAccount", keyFile="/k", key={"file": "/k"}),
            "identity: give either keyFile or key",
        ),
        (identity(kind="workloadIdentity"), "identity.configFile: is missing"),
        (
            identity(kind="chain", keyFile="/k"),
            "identity.keyFile: unknown option; known are kind, impersonate",
        ),
        ({"identity": CHAIN, "stsEndpont": ""}, "stsEndpont: unknown option; did you mean stsEndpoint?"),
        (
            {"identity": CHAIN, "stsEndpoint": "http://sts.example.com"},
            "stsEndpoint: an endpoint that is not on this machine needs https",
        ),
        (
            {"identity": CHAIN, "storageEndpoint": "storage.example.com"},
            "storageEndpoint: an endpoint is an address such as https://storage.example.com",
        ),
        (
            {"identity": CHAIN, "signing": "hmac"},
            "signing: must be a mapping; its kind is one of hmac, signBlob",
        ),
        (
            {"identity": CHAIN, "signing": {}},
            "signing.kind: is missing: give one of hmac, signBlob",
        ),
        (
            {"identity": CHAIN, "signing": {**HMAC, "kind": "hmca"}},
            "signing.kind: must be one of hmac, signBlob; did you mean hmac?",
        ),
        (
            {"identity": CHAIN, "signing": {**HMAC, "accessId": "GOOG/1"}},
            "signing.accessId: must be the access ID of an HMAC key, which begins with GOOG",
        ),
        (
            {"identity": CHAIN, "signing": {"kind": "hmac", "accessId": "GOOG1"}},
            "signing.secret: is missing: give {file: PATH} or {value: TEXT}",
        ),
        (
            {"identity": CHAIN, "signing": {**HMAC, "secret": "hush"}},
            "signing.secret: give {file: PATH} or {value: TEXT}",
        ),
        (
            {"identity": CHAIN, "signing": {**HMAC, "serviceAccount": SHARER}},
            "signing.serviceAccount: unknown option; known are kind, accessId, secret",
        ),
        (
            {"identity": CHAIN, "signing": {"kind": "signBlob"}},
            "signing.serviceAccount: is missing: the identity does not name the account to sign as",
        ),
        (
            {"identity": {"kind": "serviceAccount", "keyFile": "/k"}, "signing": {"kind": "signBlob"}},
            "signing.serviceAccount: is missing: the identity does not name the account to sign as",
        ),
        (
            {
                "identity": {**CHAIN, "impersonate": {"serviceAccount": SHARER}},
                "signing": {"kind": "signBlob", "delegates": [SHARER]},
            },
            "signing.delegates: leads to a serviceAccount, which is missing",
        ),
    ],
)
def test_fault_is_named(options, fault):
    assert told(check(options)) == [fault]


@each_case("account", ["", "a", "a@b/../c", "a@b:generate", "a b@c", "a@b\n"])
def test_service_account_that_would_change_the_address_is_refused(account):
    assert check(identity(kind="chain", impersonate={"serviceAccount": account}))
    assert check({"identity": CHAIN, "signing": {"kind": "signBlob", "serviceAccount": account}})


def test_secret_is_in_no_fault_and_no_repr():
    options = identity(kind="serviceAccount", key={"value": "hush", "file": "/k"})

    assert check(options)
    assert "hush" not in "".join(told(check(options)))
    assert "hush" not in repr(parse(identity(kind="serviceAccount", key={"value": "hush"})))


@each_case(
    "signing",
    [
        {"kind": "hmac", "accessId": "hush hush", "secret": "hush"},
        {"kind": "hmac", "accessId": 7, "secret": {"value": "hush", "file": "hush"}},
        {"kind": "hush"},
        {"kind": "hmac", "accessId": "GOOG1", "secret": {"valeu": "hush"}},
        ["hush"],
    ],
)
def test_what_was_given_for_signing_is_in_no_fault(signing):
    faults = told(check({"identity": CHAIN, "signing": signing}))

    assert faults
    assert "hush" not in "".join(faults)


def test_hmac_keys_secret_is_in_no_repr():
    options = parse({"identity": CHAIN, "signing": {**HMAC, "secret": {"value": "hush"}}})

    assert "hush" not in f"{options!r}{options}{options.signing!r}"


def test_no_options_stand_for_the_chain():
    assert isinstance(parse({}).identity, ChainOptions)


def test_addresses_follow_the_universe():
    options = parse({"identity": CHAIN, "universeDomain": "u.example"})

    assert options.sts_url == "https://sts.u.example/v1/token"
    assert options.iam_url == "https://iamcredentials.u.example"
    assert options.storage_url == "https://storage.u.example"


def test_addresses_can_be_chosen():
    options = parse(
        {"identity": CHAIN, "stsEndpoint": "https://sts.p.example/", "storageEndpoint": "https://s.p.example"}
    )

    assert options.sts_url == "https://sts.p.example/v1/token"
    assert options.storage_url == "https://s.p.example"


@each_case(
    "model",
    [
        ChainOptions,
        GcpOptions,
        HmacOptions,
        ImpersonateOptions,
        MetadataOptions,
        ServiceAccountOptions,
        SignBlobOptions,
        WorkloadIdentityOptions,
    ],
)
def test_every_option_is_on_the_vendors_page(model):
    page = (Path(__file__).parents[4] / "docs" / "vendors" / "gcp.md").read_text()

    assert [field.alias for field in model.model_fields.values() if str(field.alias) not in page] == []
