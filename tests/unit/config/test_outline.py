from __future__ import annotations

from gateway.config.outline import outline
from gateway.config.schema import (
    Config,
    KeySetConfig,
    ServiceName,
    ServicesConfig,
    ShareConfig,
    StorageConfig,
    TableConfig,
    TlsConfig,
)


def test_entries_are_named_as_in_the_file():
    assert list(outline(TableConfig)) == [
        "name",
        "location",
        "id",
        "historyShared",
        "startVersion",
        "auxiliaryLocations",
        "accessModes",
        "r2Credentials",
        "freshness",
        "indexEvery",
    ]


def test_sections_are_found_alone_in_lists_and_where_they_may_be_missing():
    shares, storages = outline(Config)["shares"], outline(Config)["storages"]
    assert (shares.section, shares.is_list, shares.is_nullable) == (ShareConfig, True, False)
    assert (storages.section, storages.is_list, storages.is_nullable) == (StorageConfig, True, True)
    tls = outline(ServicesConfig)["tls"]
    assert (tls.section, tls.is_list, tls.is_nullable) == (TlsConfig, False, True)


def test_required_keys_are_known():
    assert [entry.key for entry in outline(TableConfig).values() if entry.is_required] == ["name", "location"]


def test_a_variable_has_underscores_where_the_key_has_humps():
    assert outline(KeySetConfig)["grantPrivateKey"].variable == "GRANT_PRIVATE_KEY"


def test_a_mapping_by_service_has_its_services_as_members():
    assert outline(ServicesConfig)["addresses"].members == tuple(ServiceName)
