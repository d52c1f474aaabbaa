from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from sluice_recipient import (
    NotInstalled,
    ProfileError,
    SharedTable,
    StaticCredentialWarning,
    Unavailable,
    open_table,
)
from sluice_recipient.address import parse_name
from sluice_recipient.client import GatewayClient
from sluice_recipient.companion import Address
from sluice_recipient.profile import parse_profile

from tests.cases import each_case
from tests.fakes.recipient_transport import (
    NOON,
    PROFILE,
    SECRETS,
    FakeTransport,
    aws_answer,
    azure_answer,
    by_path,
    gcp_answer,
    metadata,
)

PLACE: dict[str, Any] = {"region": "eu-west-1", "endpoint": "http://127.0.0.1:9000"}


class FakeCompanion:
    """Gives each table an address, without a process."""

    def address_of(self, profile, name):
        return Address(uri=f"http://127.0.0.1:1/{name}", token_file=Path("/some/token"))


class DeadCompanion:
    def address_of(self, profile, name):
        raise Unavailable("the process that renews credentials has ended")


def _table(answer, *, companion=FakeCompanion, environ=None, **options) -> SharedTable:
    client = GatewayClient(parse_profile(PROFILE), FakeTransport(answer), clock=lambda: NOON)
    name = parse_name("sales.shop.orders")
    return SharedTable(client, name, companion=companion, environ=environ or {}, **options)


@pytest.fixture(autouse=True)
def _every_warning_is_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_table_is_opened_by_its_address(tmp_path):
    file = tmp_path / "reader.share"
    file.write_text(json.dumps(PROFILE))
    table = open_table(f"{file}#sales.shop.orders", transport=FakeTransport(aws_answer()))

    assert str(table.name) == "sales.shop.orders"
    assert table.address == f"{file}#sales.shop.orders"
    assert table.location == "s3://lake/orders"


def test_a_profile_can_be_a_mapping():
    table = open_table("sales.shop.orders", profile=PROFILE, transport=FakeTransport(aws_answer()))

    assert (str(table.name), table.address) == ("sales.shop.orders", None)


def test_opening_asks_nothing():
    transport = FakeTransport(aws_answer())
    open_table("sales.shop.orders", profile=PROFILE, transport=transport)

    assert transport.requests == []


def test_a_mode_that_is_none_is_refused_at_once():
    with pytest.raises(ProfileError, match="prefix"):
        open_table("sales.shop.orders", profile=PROFILE, mode="prefix")  # type: ignore[arg-type]


def test_a_table_shows_no_secret():
    table = _table(aws_answer())
    table.credentials()

    assert not any(secret in repr((table, vars(table))) for secret in SECRETS)


def test_plain_options_hold_the_credential():
    options = _table(aws_answer(**PLACE)).storage_options()

    assert options["aws_session_token"] == SECRETS[1]


def test_renewed_options_hold_an_address_in_its_place():
    options = _table(aws_answer(**PLACE)).storage_options(renewed=True)

    assert options["aws_container_credentials_full_uri"] == "http://127.0.0.1:1/sales.shop.orders"
    assert not any(secret in options.values() for secret in SECRETS)


@each_case(
    ("answer", "options", "why"),
    [
        (azure_answer(), {}, "for this store"),
        (gcp_answer(), {}, "for this store"),
        (aws_answer(), {}, "region"),
        (aws_answer(**PLACE), {"companion": None}, "transport"),
        (aws_answer(**PLACE), {"companion": DeadCompanion}, "has ended"),
        (aws_answer(**PLACE), {"environ": {"AWS_ACCESS_KEY_ID": "AKIA2"}}, "AWS_ACCESS_KEY_ID"),
        (aws_answer(**PLACE), {"environ": {"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}}, "AWS_WEB_IDENTITY"),
    ],
)
def test_what_cannot_be_renewed_is_static_and_says_so(answer, options, why):
    table = _table(answer, **options)

    with pytest.warns(StaticCredentialWarning, match=rf"2030-01-01T13:00:00.*{why}"):
        found = table.storage_options(renewed=True)
    assert found == table.storage_options()


def test_a_credential_for_an_auxiliary_location_is_asked_for_by_name():
    transport = FakeTransport(aws_answer())
    table = open_table("sales.shop.orders", profile=PROFILE, transport=transport)
    table.credentials("s3://other/part")

    (request,) = transport.requests
    assert request.body is not None
    assert b"s3://other/part" in request.body


@pytest.mark.parametrize("open_with", [SharedTable.to_arrow, SharedTable.to_polars])
def test_what_reads_urls_is_named_where_it_is_missing(open_with, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotInstalled, match=r"recipient\[url\]"):
        open_with(_table(by_path(metadata=metadata(accessModes=["url"]))))


def test_dir_is_taken_even_where_it_is_not_advertised():
    table = _table(by_path(temporary_table_credentials=aws_answer()), mode="dir")

    assert table.access_for("deltalake", frozenset({"s3"})) == "dir"


def test_auto_is_what_the_gateway_advertises():
    answer = by_path(metadata=metadata(accessModes=["url"]), temporary_table_credentials=aws_answer())

    assert _table(answer).access_for("deltalake", frozenset({"s3"})) == "url"


@pytest.mark.parametrize(("method", "extra"), [("to_deltalake", "deltalake"), ("to_duckdb", "duckdb")])
def test_a_missing_library_names_its_extra(method, extra):
    with pytest.raises(NotInstalled, match=rf"pip install '\./recipient\[{extra}\]'"):
        getattr(_table(aws_answer()), method)()
