from __future__ import annotations

import uuid
from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.credential import AzureUserDelegationSas
from gateway.domain.location import parse_location
from gateway.domain.scope import Scope
from gateway.errors import Unavailable, Unsupported
from gateway.ports import StorageSettings
from tests.unit.vendors.azure.doubles import ACCOUNT, NOON, FakeClock, delegation_key, options
from vendors.azure.account import Account
from vendors.azure.issuer import AzureIssuer, correlation_id

HOST = "tables@lakeaccount.dfs.core.windows.net"
TABLE = parse_location(f"abfss://{HOST}/sales/orders")
HOUR = timedelta(hours=1)


def issuer(key=None, *, clock=None, account: Account = ACCOUNT, **given_options) -> AzureIssuer:
    settings = StorageSettings(
        name="lake", prefix=parse_location(f"abfss://{HOST}"), public_url="", clock=clock or FakeClock()
    )

    async def get_key(life):
        return key or delegation_key()

    return AzureIssuer(settings, options(**given_options), account, get_key)


async def issued(location=TABLE, *, life=HOUR, recipient="acme", **arguments):
    credential = await issuer(**arguments).issue(Scope(location=location, recipient=recipient, life=life))
    assert isinstance(credential.secret, AzureUserDelegationSas)
    query = parse_qs(credential.secret.sas_token, strict_parsing=True)
    return credential, {name: values[0] for name, values in query.items()}


async def test_credential_is_a_sas_of_the_directory():
    _, fields = await issued()

    assert (fields["sr"], fields["sdd"], fields["sp"], fields["spr"]) == ("d", "2", "rl", "https")


async def test_reported_expiration_is_the_one_that_azure_enforces():
    credential, fields = await issued()

    assert credential.expires_at == NOON + HOUR
    assert fields["se"] == "2026-01-02T13:00:00Z"


async def test_fraction_of_a_second_is_not_promised():
    credential, fields = await issued(clock=FakeClock(NOON + timedelta(microseconds=999_999)))

    assert credential.expires_at == NOON + HOUR
    assert fields["se"] == "2026-01-02T13:00:00Z"


async def test_sas_does_not_outlive_its_key():
    credential, fields = await issued(key=delegation_key(life=timedelta(minutes=20)))

    assert credential.expires_at == NOON + timedelta(minutes=20)
    assert fields["se"] == fields["ske"]


@given(life=st.integers(1, 10 * 86400), key_life=st.integers(1, 6 * 86400))
async def test_sas_never_outlives_its_key_whatever_is_asked_for(life, key_life):
    key = delegation_key(life=timedelta(seconds=key_life))
    credential, fields = await issued(key=key, life=timedelta(seconds=life))

    assert credential.expires_at == NOON + timedelta(seconds=min(life, key_life))
    assert fields["se"] <= fields["ske"]


async def test_key_that_has_expired_signs_nothing():
    with pytest.raises(Unavailable, match="key has expired"):
        await issued(clock=FakeClock(NOON + timedelta(hours=5)))


async def test_sas_starts_before_now_for_a_clock_that_is_behind():
    _, fields = await issued(key=delegation_key(starts_at=NOON - HOUR), clockSkew="15m")

    assert fields["st"] == "2026-01-02T11:45:00Z"


async def test_sas_does_not_start_before_its_key():
    _, fields = await issued(clockSkew="15m")

    assert fields["st"] == fields["skt"] == "2026-01-02T11:55:00Z"


async def test_recipient_is_named_by_a_correlation_id():
    _, fields = await issued()
    _, other = await issued(recipient="globex")

    assert fields["scid"] == correlation_id("acme") != other["scid"]
    assert str(uuid.UUID(fields["scid"])) == fields["scid"]
    assert issuer().names_recipients


async def test_without_correlation_id_all_recipients_are_given_the_same():
    first, fields = await issued(correlationId=False)
    second, _ = await issued(recipient="globex", correlationId=False)

    assert first == second
    assert "scid" not in fields
    assert not issuer(correlationId=False).names_recipients


async def test_scope_without_recipient_names_nobody():
    _, fields = await issued(recipient="")

    assert "scid" not in fields


async def test_value_is_a_function_of_the_scope_and_not_of_its_spelling():
    first, _ = await issued(parse_location(f"abfss://{HOST}/sales/orders"))
    second, _ = await issued(parse_location("wasbs://tables@LAKEACCOUNT.blob.core.windows.net/sales/orders/"))

    assert first == second


async def test_percent_sign_is_part_of_the_name():
    literal, _ = await issued(parse_location(f"abfss://{HOST}/%41bc"))
    decoded, _ = await issued(parse_location(f"abfss://{HOST}/Abc"))

    assert literal.secret != decoded.secret


async def test_root_of_the_container_is_opened_as_a_container():
    _, fields = await issued(parse_location(f"abfss://{HOST}"), hierarchicalNamespace=False)

    assert fields["sr"] == "c"


async def test_accepted_container_scope_opens_the_container():
    _, fields = await issued(hierarchicalNamespace=False, containerScope="accept")

    assert fields["sr"] == "c"
    assert "sdd" not in fields


@pytest.mark.parametrize("given_options", [{"hierarchicalNamespace": False}, {"hierarchicalNamespace": None}])
async def test_flat_account_is_refused_unless_container_scope_is_accepted(given_options, caplog):
    with pytest.raises(Unsupported, match="cannot open a directory"):
        await issued(**given_options)

    assert "hierarchical namespace" in caplog.text


@pytest.mark.parametrize("text", [f"abfss://{HOST.replace('tables@', 'other@')}/t", "s3://tables/t"])
async def test_location_outside_the_storage_is_refused(text):
    with pytest.raises(Unsupported):
        await issued(parse_location(text))


async def test_id_names_the_credential_and_is_no_part_of_it():
    first, fields = await issued()
    second, _ = await issued(recipient="globex")

    assert first.id != second.id
    assert first.id.startswith("sas-")
    assert first.id.removeprefix("sas-") not in first.secret.sas_token
    assert fields["sig"] not in repr(first)


@pytest.mark.parametrize(
    ("endpoint", "protocol"),
    [
        ("http://127.0.0.1:10000/lakeaccount", "https,http"),
        ("https://127.0.0.1:10000/lakeaccount", "https"),
        ("http://storage.example", "https"),
    ],
)
async def test_plain_http_is_allowed_on_this_machine_only(endpoint, protocol):
    account = Account(name="lakeaccount", container="tables", endpoint=endpoint)
    _, fields = await issued(account=account)

    assert fields["spr"] == protocol
