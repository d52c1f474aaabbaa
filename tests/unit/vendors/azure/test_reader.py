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

    assert open_store(local, None, FakeTokens()).client_options == {"allow_http": "true"}
    assert open_store(ACCOUNT, None, FakeTokens()).client_options == {"allow_http": "false"}
