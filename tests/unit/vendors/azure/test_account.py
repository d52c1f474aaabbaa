from __future__ import annotations

from gateway.domain.location import parse_location
from tests.cases import each_case
from vendors.azure.account import host_fault, read_account


@each_case(
    ("text", "name", "endpoint"),
    [
        ("abfss://c@lake.dfs.core.windows.net/t", "lake", "https://lake.blob.core.windows.net"),
        ("wasbs://c@lake.blob.core.windows.net/t", "lake", "https://lake.blob.core.windows.net"),
        ("abfss://c@lake.dfs.core.chinacloudapi.cn/t", "lake", "https://lake.blob.core.chinacloudapi.cn"),
        ("abfss://c@lake.z04.dfs.storage.azure.net/t", "lake", "https://lake.z04.blob.storage.azure.net"),
    ],
)
def test_account_is_read_from_the_host(text, name, endpoint):
    location = parse_location(text)
    account = read_account(location)

    assert (account.name, account.container, account.endpoint) == (name, "c", endpoint)
    assert account.protocol == "https"
    assert host_fault(location) is None


def test_endpoint_of_the_options_takes_its_place():
    location = parse_location("abfss://c@lake.dfs.core.windows.net/t")
    account = read_account(location, "http://127.0.0.1:10000/lake")

    assert account.endpoint == "http://127.0.0.1:10000/lake"
    assert account.url("a") == "http://127.0.0.1:10000/lake/c/a"


@each_case(
    ("host", "words"),
    [
        ("onelake.dfs.fabric.microsoft.com", "OneLake"),
        ("lake-secondary.dfs.core.windows.net", "does not name a storage account"),
        ("dfs.core.windows.net", "does not name a storage account"),
        ("lake.privatelink.dfs.core.windows.net", "does not name a storage account"),
        ("lake.example.com", "does not name a storage account"),
        ("localhost", "does not name a storage account"),
    ],
)
def test_host_that_is_no_account_is_a_fault(host, words):
    assert words in (host_fault(parse_location(f"abfss://c@{host}/t")) or "")


def test_names_are_encoded_once():
    account = read_account(parse_location("abfss://$web@lake.dfs.core.windows.net"))

    assert account.url("a b/%41?é#+") == (
        "https://lake.blob.core.windows.net/$web/a%20b/%2541%3F%C3%A9%23%2B"
    )
