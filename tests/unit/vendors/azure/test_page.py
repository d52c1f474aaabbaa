from __future__ import annotations

from pathlib import Path

from tests.cases import each_case
from vendors.azure.config import (
    AzureOptions,
    ChainIdentity,
    ClientSecretIdentity,
    ManagedIdentity,
    RevocationOptions,
    WorkloadIdentity,
)
from vendors.azure.issuer import correlation_id

PAGE = (Path(__file__).parents[4] / "docs" / "vendors" / "azure.md").read_text(encoding="utf-8")
IDENTITIES = (ClientSecretIdentity, ManagedIdentity, WorkloadIdentity, ChainIdentity)


def keys_of(model, prefix=""):
    return {prefix + (field.alias or name) for name, field in model.model_fields.items()}


@each_case(
    "key",
    sorted(
        (keys_of(AzureOptions) - {"identity", "revocation"})
        | keys_of(RevocationOptions, "revocation.")
        | {key for identity in IDENTITIES for key in keys_of(identity, "identity.")}
    ),
)
def test_every_option_is_on_the_page(key):
    assert f"`{key}" in PAGE


@each_case("kind", ["clientSecret", "managedIdentity", "workloadIdentity", "chain"])
def test_every_kind_of_identity_is_on_the_page(kind):
    assert f"`{kind}`" in PAGE


def test_correlation_id_is_the_one_that_the_page_computes():
    assert "uuid.uuid5(uuid.NAMESPACE_URL, 'urn:sluice:recipient:acme')" in PAGE
    assert correlation_id("acme") == "0fa19f12-5696-5993-9471-eab3d71929e7"
