from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each_case
from tests.unit.vendors.r2.cloudflare import ACCOUNT, SECRET, options, raw_options
from tests.unit.vendors.words import told
from vendors.r2.config import KeysOptions, R2Options, RevocationOptions, check

TOKEN = {"value": "hush"}


@each_case(
    "changes",
    [
        {},
        {"jurisdiction": "eu"},
        {"jurisdiction": "fedramp"},
        {"mint": "local"},
        {"mint": "api", "apiToken": {"file": "/token"}},
        {"revocation": {"deleteParentToken": True, "apiToken": TOKEN}},
        {"endpoint": "http://127.0.0.1:9000", "apiEndpoint": "http://localhost:9001/client/v4"},
    ],
)
def test_options_are_fine(changes):
    assert check(raw_options(**changes)) == []


@pytest.mark.parametrize("identity", [None, {}, {"kind": "chain"}])
def test_entry_without_an_identity_is_told_what_to_give(identity):
    faults = told(check(raw_options(identity=identity)))

    assert faults
    assert all(fault.startswith("identity") for fault in faults)
    assert "keys" in faults[0]


@each_case(
    ("changes", "fault"),
    [
        ({"mint": "api"}, "apiToken: is for mint: api, which needs it"),
        ({"apiToken": TOKEN}, "apiToken: is for mint: api, which needs it"),
        (
            {"revocation": {"deleteParentToken": True}},
            "revocation.apiToken: is missing: give {file: PATH} or {value: TEXT}",
        ),
        ({"jurisdiction": "fedram"}, "jurisdiction: must be one of eu, fedramp; did you mean fedramp?"),
        ({"acountId": ""}, "acountId: unknown option; did you mean accountId?"),
        (
            {"endpoint": "http://r2.example.com"},
            "endpoint: an endpoint that is not on this machine needs https",
        ),
        (
            {"endpoint": "https://user@r2.example.com"},
            "endpoint: an endpoint is an address such as https://storage.example.com",
        ),
    ],
)
def test_fault_is_named(changes, fault):
    assert told(check(raw_options(**changes))) == [fault]


@each_case("account", ["", "a.example.com", "a/b", "A", "a" * 33, "a\n"])
def test_account_that_would_change_the_address_is_refused(account):
    assert check(raw_options(accountId=account))


def test_missing_account_is_named():
    raw = raw_options()
    del raw["accountId"]

    assert told(check(raw)) == ["accountId: is missing"]


def test_secrets_are_in_no_repr():
    shown = repr(options(mint="api", apiToken=TOKEN))

    assert SECRET not in shown
    assert "hush" not in shown


def test_endpoint_is_the_accounts_or_the_chosen_one():
    assert options().endpoint_url == f"https://{ACCOUNT}.r2.cloudflarestorage.com"
    assert (
        options(jurisdiction="fedramp").endpoint_url == f"https://{ACCOUNT}.fedramp.r2.cloudflarestorage.com"
    )
    assert options(endpoint="http://127.0.0.1:9000/").endpoint_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize("model", [KeysOptions, R2Options, RevocationOptions])
def test_every_option_is_on_the_vendors_page(model):
    page = (Path(__file__).parents[4] / "docs" / "vendors" / "r2.md").read_text()

    assert [field.alias for field in model.model_fields.values() if str(field.alias) not in page] == []
