from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.vendors.azure.doubles import ACCOUNT, NOON, FakeClock, FakeTokens
from vendors.azure.account import Account
from vendors.azure.account_key import AccountKeys
from vendors.azure.reader import by_key, by_token, open_store
from vendors.options import SecretOptions

AMBIENT = {
    "AZURE_STORAGE_ACCOUNT_NAME": "ambient",
    "AZURE_STORAGE_ENDPOINT": "https://ambient.example",
    "AZURE_CONTAINER_NAME": "ambient",
    "AZURE_SKIP_SIGNATURE": "true",
    "AZURE_STORAGE_USE_EMULATOR": "true",
    "AZURE_STORAGE_ACCOUNT_KEY": "YW1iaWVudA==",
    "AZURE_STORAGE_SAS_KEY": "sig=ambient",
}
PROVIDE = by_token(FakeTokens())
KEYS = AccountKeys("lake", SecretOptions.model_validate({"value": "a2V5"}), FakeClock())


@pytest.mark.parametrize("provide", [PROVIDE, by_key(KEYS)])
def test_nothing_of_the_environment_takes_the_place_of_what_is_named(monkeypatch, provide):
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    store = open_store(ACCOUNT, None, provide)

    assert store.config["account_name"] == "lakeaccount"
    assert store.config["endpoint"] == ACCOUNT.endpoint
    assert store.config["container_name"] == "tables"
    assert "ambient" not in str(store.config)


async def test_own_token_or_the_accounts_key_is_given():
    assert await PROVIDE() == {"token": "own-token", "expires_at": NOON + timedelta(hours=1)}
    assert await by_key(KEYS)() == {"access_key": "a2V5", "expires_at": NOON + timedelta(minutes=6)}


def test_plain_http_is_allowed_on_this_machine_only():
    local = Account(name="lakeaccount", container="tables", endpoint="http://127.0.0.1:10000/lakeaccount")

    assert _allows_http(local) == "true"
    assert _allows_http(ACCOUNT) == "false"


def _allows_http(account):
    # obstore gives back what it was given as texts.
    return (open_store(account, None, PROVIDE).client_options or {}).get("allow_http")
