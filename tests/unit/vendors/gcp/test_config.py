from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.vendors.words import told
from vendors.gcp.config import (
    ChainOptions,
    GcpOptions,
    ImpersonateOptions,
    MetadataOptions,
    ServiceAccountOptions,
    WorkloadIdentityOptions,
    check,
    parse,
)

CHAIN = {"kind": "chain"}


def identity(**options: object) -> dict[str, object]:
    return {"identity": options}


@pytest.mark.parametrize(
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
    ],
)
def test_options_are_fine(options):
    assert check(options) == []


@pytest.mark.parametrize("options", [{}, {"identity": None}, {"identity": {}}, identity(kind="magic")])
def test_entry_without_an_identity_is_told_the_kinds(options):
    (fault,) = told(check(options))

    assert fault.startswith("identity")
    assert "one of serviceAccount, workloadIdentity, metadata, chain" in fault


@pytest.mark.parametrize(
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
    ],
)
def test_fault_is_named(options, fault):
    assert told(check(options)) == [fault]


@pytest.mark.parametrize("account", ["", "a", "a@b/../c", "a@b:generate", "a b@c", "a@b\n"])
def test_service_account_that_would_change_the_address_is_refused(account):
    assert check(identity(kind="chain", impersonate={"serviceAccount": account}))


def test_secret_is_in_no_fault_and_no_repr():
    options = identity(kind="serviceAccount", key={"value": "hush", "file": "/k"})

    assert check(options)
    assert "hush" not in "".join(told(check(options)))
    assert "hush" not in repr(parse(identity(kind="serviceAccount", key={"value": "hush"})))


def test_no_options_stand_for_the_chain():
    assert isinstance(parse({}).identity, ChainOptions)


def test_addresses_follow_the_universe():
    options = parse({"identity": CHAIN, "universeDomain": "u.example"})

    assert options.sts_url == "https://sts.u.example/v1/token"
    assert options.storage_url == "https://storage.u.example"


def test_addresses_can_be_chosen():
    options = parse(
        {"identity": CHAIN, "stsEndpoint": "https://sts.p.example/", "storageEndpoint": "https://s.p.example"}
    )

    assert options.sts_url == "https://sts.p.example/v1/token"
    assert options.storage_url == "https://s.p.example"


@pytest.mark.parametrize(
    "model",
    [
        ChainOptions,
        GcpOptions,
        ImpersonateOptions,
        MetadataOptions,
        ServiceAccountOptions,
        WorkloadIdentityOptions,
    ],
)
def test_every_option_is_on_the_vendors_page(model):
    page = (Path(__file__).parents[4] / "docs" / "vendors" / "gcp.md").read_text()

    assert [field.alias for field in model.model_fields.values() if str(field.alias) not in page] == []
