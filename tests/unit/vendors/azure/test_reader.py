from __future__ import annotations

from tests.unit.vendors.azure.doubles import ACCOUNT, FakeTokens
from vendors.azure.account import Account
from vendors.azure.reader import open_store

AMBIENT = {
    "AZURE_STORAGE_ACCOUNT_NAME": "ambient",
    "AZURE_STORAGE_ENDPOINT": "https://ambient.example",
    "AZURE_CONTAINER_NAME": "ambient",
    "AZURE_SKIP_SIGNATURE": "true",
    "AZURE_STORAGE_USE_EMULATOR": "true",
}


def test_nothing_of_the_environment_takes_the_place_of_what_is_named(monkeypatch):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    store = open_store(ACCOUNT, None, FakeTokens())

    assert store.config["account_name"] == "lakeaccount"
    assert store.config["endpoint"] == ACCOUNT.endpoint
    assert store.config["container_name"] == "tables"
    assert "ambient" not in str(store.config)


def test_plain_http_is_allowed_on_this_machine_only():
    local = Account(name="lakeaccount", container="tables", endpoint="http://127.0.0.1:10000/lakeaccount")

    assert _allows_http(local) == "true"
    assert _allows_http(ACCOUNT) == "false"


def _allows_http(account):
    # obstore gives back what it was given as texts.
    return (open_store(account, None, FakeTokens()).client_options or {}).get("allow_http")
