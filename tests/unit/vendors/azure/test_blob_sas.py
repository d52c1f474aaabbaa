from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import pytest
from azure.storage.blob import BlobClient
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.domain.file_path import encode_path
from tests.cases import each_case
from tests.hypothesis_profiles import examples
from tests.unit.vendors.azure.doubles import ACCOUNT, account_key, delegation_key
from tests.unit.vendors.azure.sdk import sdk_sas
from vendors.azure.blob_sas import BlobSas
from vendors.azure.sas import SasResource

START = datetime(2026, 1, 2, 2, 59, 5, tzinfo=UTC)
EXPIRY = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)
LENT = delegation_key(starts_at=START)
OWN = account_key()
KEYS = {"delegation": LENT, "account": OWN}

# Made by the SDK's release that signed the version that we sign.
VECTORS = json.loads(Path(__file__).with_name("blob_sas_vectors.json").read_text(encoding="utf-8"))["vectors"]

# Whatever a store may have for a name: only what breaks lines is refused long before.
NAMES = st.lists(
    st.one_of(
        st.sampled_from(
            ["/", "//", "%", "%20", "%2F", "%41", "+", "=", "#", "?", "&", " ", "é", "日本", "😀"]
        ),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=8,
).map(lambda parts: "".join(parts).strip("/") or "%2F")


def terms(directory: str = "sales/orders", key=LENT, **changes) -> BlobSas:
    place = {"account": "lakeaccount", "container": "tables", "path": directory}
    times = {"starts_at": START, "expires_at": EXPIRY}
    given_times = {name: changes.pop(name) for name in tuple(changes) if name not in place}
    return BlobSas.of(SasResource(**(place | changes)), key, **(times | given_times))


def signature(name: str, sas: BlobSas | None = None) -> str:
    return (sas or terms()).sign(encode_path(name).encode()).decode()


def url(directory: str, name: str, key) -> str:
    """Return a URL as it is made of columns."""
    sas = terms(directory, key)
    origin = ACCOUNT.url(directory) if directory else ACCOUNT.url()
    return f"{origin}/{encode_path(name)}?{sas.query}{signature(name, sas)}"


@each_case("vector", VECTORS, ids=lambda vector: f"{vector['key']} {vector['path']}")
def test_url_is_the_one_that_the_sdk_of_that_version_made(vector):
    assert url(vector["directory"], vector["path"], KEYS[vector["key"]]) == vector["url"]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@settings(max_examples=examples(10))
@given(directory=NAMES, name=NAMES)
@example(directory="a//b", name="c//d")
@example(directory="date=2021-04-28", name="part 0+%20#?&é.parquet")
@example(directory="%41", name="%2541")
def test_url_is_byte_for_byte_the_one_that_the_sdk_makes(key, directory, name):
    token = sdk_sas(f"{directory}/{name}", key, permission="r", start=START, expiry=EXPIRY, protocol="https")
    client = BlobClient(ACCOUNT.endpoint, "tables", f"{directory}/{name}", credential=token)

    assert url(directory, name, key) == client.url


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@settings(deadline=None)
@given(names=st.lists(NAMES, min_size=1, max_size=20))
def test_names_are_signed_together_as_each_by_itself(key, names):
    sas = terms(key=key)
    together = sas.sign("\n".join(map(encode_path, names)).encode())

    assert together.decode().split("\n") == [signature(name, sas) for name in names]


@settings(deadline=None)
@given(name=NAMES, other=NAMES)
def test_two_blobs_never_share_a_signature(name, other):
    assert (signature(name) == signature(other)) == (name == other)


@settings(deadline=None)
@given(name=NAMES)
def test_signature_needs_no_escaping_in_json_or_a_url(name):
    found = signature(name)

    assert found.isascii()
    assert not set(found) & set('"\\<> &#+=\n')
    assert len(unquote(found)) == 44


def test_nothing_is_signed_for_no_paths():
    assert terms().sign(b"") == b""


@each_case(
    "change",
    [
        {"account": "lakeaccount2"},
        {"container": "tables2"},
        {"path": "sales"},
        {"starts_at": EXPIRY},
        {"expires_at": START},
        {"protocol": "https,http"},
    ],
)
@each_case("key", KEYS.values(), ids=KEYS)
def test_place_times_and_protocol_are_signed(key, change):
    assert signature("a", terms(key=key, **change)) != signature("a", terms(key=key))


def test_file_of_a_directory_is_not_the_one_of_another_with_the_same_end():
    assert signature("b/c", terms("a")) == signature("c", terms("a/b"))
    assert signature("c", terms("a")) != signature("c", terms("a/b"))


def test_container_itself_has_blobs():
    assert signature("a/b", terms("")) == signature("b", terms("a"))


def test_query_reads_one_blob_over_https_and_tells_the_key_that_was_lent():
    fields = dict(parse_qsl(terms().query, keep_blank_values=True))

    assert fields.pop("sig") == ""
    assert fields == {
        "st": "2026-01-02T02:59:05Z",
        "se": "2026-01-02T04:04:05Z",
        "sp": "r",
        "spr": "https",
        "sv": "2023-11-03",
        "sr": "b",
        **LENT.fields,
    }


def test_query_tells_nothing_of_the_accounts_own_key():
    sas = terms(key=OWN)

    assert set(dict(parse_qsl(sas.query, keep_blank_values=True))) == {
        *("st", "se", "sp", "spr", "sv", "sr", "sig")
    }
    assert OWN.text not in sas.query


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_query_ends_where_the_signature_goes(key):
    assert terms(key=key).query.endswith("&sig=")


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_secret_is_not_shown(key):
    assert repr(key.secret) not in repr(terms(key=key))
