from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from gateway.domain.location import parse_location
from gateway.ports import Signer
from tests.cases import each_case
from tests.unit.vendors.gcp.google import SHARER, FakeGoogle
from tests.unit.vendors.gcp.iam import FakeIam
from tests.unit.vendors.gcp.signed import GATEWAY, key_file, read, small_key, urls_of
from vendors.gcp.blob_signer import BlobSigner
from vendors.gcp.chain_signer import ChainSigner
from vendors.gcp.config import check, parse
from vendors.gcp.hmac_signer import HmacSigner
from vendors.gcp.identity import Identity
from vendors.gcp.rsa_signer import RsaSigner
from vendors.gcp.signer import Signers, why_unsigned

TABLE = parse_location("gs://lake/sales/orders")
OTHER = "other@project.iam.gserviceaccount.com"
MIDDLE = "middle@project.iam.gserviceaccount.com"
IMPERSONATE = {"serviceAccount": SHARER, "delegates": [MIDDLE]}
HMAC = {"kind": "hmac", "accessId": "GOOG1E", "secret": {"value": "hush"}}

KEY = {"kind": "serviceAccount", "key": {"value": key_file()}}
WORKLOAD = {"kind": "workloadIdentity", "configFile": "/config.json"}
METADATA = {"kind": "metadata"}
CHAIN = {"kind": "chain"}


class Opened:
    """What a storage has opened, of Google's."""

    def __init__(self, options: dict[str, object]) -> None:
        self.google = FakeGoogle()
        self.iam = FakeIam()
        parsed = parse(options)
        self.signers = Signers(
            options=parsed,
            identity=Identity(parsed, self.google.transport, self.google.clock),
            transport=self.google.transport,
            call=self.iam.call,
            clock=self.google.clock,
        )


def chosen(identity: Mapping[str, object], **options: object) -> Signer | None:
    assert check({"identity": identity, **options}) == []
    return Opened({"identity": identity, **options}).signers.by_options()


@each_case("identity", [KEY, WORKLOAD, METADATA, CHAIN])
def test_hmac_key_signs_whoever_the_identity_is(identity):
    assert isinstance(chosen(identity, signing=HMAC), HmacSigner)
    assert isinstance(chosen({**identity, "impersonate": IMPERSONATE}, signing=HMAC), HmacSigner)


@each_case("identity", [KEY, WORKLOAD, METADATA, CHAIN])
def test_google_signs_as_the_account_that_is_impersonated_or_named(identity):
    assert isinstance(chosen({**identity, "impersonate": IMPERSONATE}), BlobSigner)
    assert isinstance(
        chosen({**identity, "impersonate": IMPERSONATE}, signing={"kind": "signBlob"}), BlobSigner
    )
    assert isinstance(chosen(identity, signing={"kind": "signBlob", "serviceAccount": OTHER}), BlobSigner)


def test_google_signs_as_the_machines_account_where_it_is_named():
    assert isinstance(chosen({**METADATA, "serviceAccount": SHARER}), BlobSigner)


def test_key_signs_where_nobody_is_impersonated():
    assert isinstance(chosen(KEY), RsaSigner)


async def test_key_signs_as_its_own_account():
    signer = chosen(KEY)
    assert signer is not None
    (url,) = await urls_of(signer, TABLE, "a")

    assert read(url).signer == GATEWAY
    assert read(url).is_by(small_key().public_key())


@pytest.mark.parametrize("identity", [WORKLOAD, METADATA, CHAIN])
def test_identity_that_names_no_account_has_no_signer_and_is_told_which_option_names_it(identity):
    (words,) = why_unsigned(parse({"identity": identity}))

    assert chosen(identity) is None
    assert "no service account is known to sign URLs as" in words
    assert "options.signing" in words
    assert "options.identity.impersonate" in words


@each_case(
    "options",
    [
        {"identity": KEY},
        {"identity": {**CHAIN, "impersonate": IMPERSONATE}},
        {"identity": {**METADATA, "serviceAccount": SHARER}},
        {"identity": CHAIN, "signing": HMAC},
        {"identity": WORKLOAD, "signing": {"kind": "signBlob", "serviceAccount": OTHER}},
    ],
)
def test_nothing_is_said_against_options_that_name_a_signer(options):
    assert why_unsigned(parse(options)) == []


async def asked(**options: object) -> tuple[Opened, str]:
    """Sign a file with an identity that has a key; return the URL."""
    opened = Opened(options)
    signer = opened.signers.by_options()
    assert signer is not None
    (url,) = await urls_of(signer, TABLE, "a")
    return opened, url


async def test_identity_itself_asks_to_sign_as_the_account_that_it_impersonates():
    opened, url = await asked(identity={**KEY, "impersonate": IMPERSONATE})

    assert read(url).signer == SHARER
    # The token of the key, not one of the account's own, which would need a role on itself.
    assert opened.iam.requests[0].headers["Authorization"] == "Bearer base"
    assert opened.iam.bodies[0]["delegates"] == [f"projects/-/serviceAccounts/{MIDDLE}"]


async def test_account_that_is_named_for_signing_comes_before_the_one_that_is_impersonated():
    signing = {"kind": "signBlob", "serviceAccount": OTHER}
    opened, url = await asked(identity={**KEY, "impersonate": IMPERSONATE}, signing=signing)

    assert read(url).signer == OTHER
    assert "delegates" not in opened.iam.bodies[0]


async def test_endpoints_are_the_settings():
    opened, url = await asked(
        identity={**KEY, "impersonate": IMPERSONATE},
        iamEndpoint="https://iam.private.example",
        storageEndpoint="https://gcs.private.example",
    )

    assert opened.iam.requests[0].url.startswith("https://iam.private.example/v1/projects/-/serviceAccounts/")
    assert url.startswith("https://gcs.private.example/lake/sales/orders/a?")


async def test_universe_is_the_settings():
    opened, url = await asked(identity={**KEY, "impersonate": IMPERSONATE}, universeDomain="u.example")

    assert opened.iam.requests[0].url.startswith("https://iamcredentials.u.example/v1/")
    assert url.startswith("https://storage.u.example/lake/")


async def test_surroundings_are_looked_at_when_a_url_is_asked_for(tmp_path, monkeypatch):
    signer = Opened({}).signers.by_surroundings()
    assert isinstance(signer, ChainSigner)
    file = tmp_path / "key.json"
    file.write_text(key_file())
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    (url,) = await urls_of(signer, TABLE, "a")

    assert read(url).is_by(small_key().public_key())


async def test_account_of_the_surroundings_is_signed_as_by_google(tmp_path, monkeypatch):
    base = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    place = (
        f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{SHARER}:generateAccessToken"
    )
    file = tmp_path / "credentials.json"
    file.write_text(
        json.dumps(
            {
                "type": "impersonated_service_account",
                "source_credentials": base,
                "service_account_impersonation_url": place,
            }
        )
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    opened = Opened({})

    (url,) = await urls_of(opened.signers.by_surroundings(), TABLE, "a")

    assert read(url).signer == SHARER
    assert len(opened.iam.requests) == 1
