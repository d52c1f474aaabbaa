from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import quote

import pytest
from google.oauth2 import service_account
from hypothesis import given

from gateway.domain.file_path import Paths
from gateway.domain.location import Location, parse_location
from gateway.domain.window import Window
from gateway.errors import Unsupported
from tests.cases import each_case
from tests.unit.vendors.gcp.google import NOON
from tests.unit.vendors.gcp.signed import (
    GATEWAY,
    KEYS,
    LIVES,
    PLACE,
    TABLES,
    WINDOW,
    key_file,
    read,
    spliced,
    window_of,
)
from vendors.gcp.service_key import parse_key
from vendors.gcp.v4 import Algorithm, Form, Place, new_form

with warnings.catch_warnings():
    # The library recommends a package that only its other transport uses.
    warnings.simplefilter("ignore", ImportWarning)
    from google.cloud import storage
    from google.cloud.storage import _signing

TABLE = parse_location("gs://lake/sales/orders")
DAY = timedelta(days=1)


def form(table: Location = TABLE, window: Window = WINDOW, place: Place = PLACE) -> Form:
    return new_form(place, table, window, algorithm=Algorithm.RSA, signer=GATEWAY)


@pytest.fixture(scope="module")
def their_url() -> Iterator[Callable[[Location, str, timedelta], str]]:
    """Sign as Google's own library does, at noon."""
    credentials = service_account.Credentials.from_service_account_info(json.loads(key_file()))
    client = storage.Client(project="test", credentials=credentials)

    def sign(table: Location, key: str, life: timedelta) -> str:
        name = f"{table.path}/{key}" if table.path else key
        url: str = (
            client.bucket(table.authority).blob(name).generate_signed_url(version="v4", expiration=life)
        )
        return url

    with frozen():
        yield sign


@contextmanager
def frozen() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_signing, "_NOW", lambda _: NOON)
        yield


@given(table=TABLES, keys=KEYS, life=LIVES)
def test_urls_are_those_of_googles_own_library_byte_for_byte(their_url, table, keys, life):
    key = parse_key(key_file())
    paths = Paths.of(quote(name, safe="/") for name in keys)
    made = form(table, window_of(life))

    ours = spliced(made.filled(map(key.sign, made.messages(paths.split()))), paths)

    assert ours == [their_url(table, name, life) for name in keys]
    assert made.expires_at == NOON + life


def test_columns_are_what_recipients_put_urls_together_from():
    made = form()

    assert made.origin == "https://storage.googleapis.com/lake/sales/orders/"
    assert made.query == (
        "X-Goog-Algorithm=GOOG4-RSA-SHA256"
        "&X-Goog-Credential=gateway%40project.iam.gserviceaccount.com%2F20261116%2Fauto%2Fstorage%2Fgoog4_request"
        "&X-Goog-Date=20261116T120000Z&X-Goog-Expires=3600&X-Goog-SignedHeaders=host&X-Goog-Signature="
    )
    assert made.filled([b"\x01\xab", b"\xff"]).signatures == b"01ab\nff"
    assert made.filled([]).signatures == b""


def test_urls_are_signed_as_of_the_windows_start_on_its_day():
    start = NOON + DAY / 2 - timedelta(seconds=1)
    made = form(window=Window(start, start + DAY / 4, start + DAY))

    assert "%2F20261116%2Fauto" in made.query
    assert "X-Goog-Date=20261116T235959Z&X-Goog-Expires=86400&" in made.query
    assert made.expires_at == start + DAY


def test_parts_of_seconds_never_lengthen_a_life():
    start = NOON + timedelta(milliseconds=700)
    made = form(window=Window(start, start + DAY, NOON + timedelta(seconds=60, milliseconds=400)))

    assert "X-Goog-Date=20261116T120000Z&X-Goog-Expires=60&" in made.query
    assert made.expires_at == NOON + timedelta(seconds=60)


def test_seven_days_are_signed_and_a_second_more_is_refused_in_words():
    assert "X-Goog-Expires=604800&" in form(window=window_of(DAY * 7)).query
    with pytest.raises(Unsupported, match="7 days at most"):
        form(window=window_of(DAY * 7 + timedelta(seconds=1)))


@each_case(
    ("endpoint", "origin", "host"),
    [
        ("https://storage.googleapis.com:443", "https://storage.googleapis.com/", "storage.googleapis.com"),
        ("https://Storage.Example:8443", "https://storage.example:8443/", "storage.example:8443"),
        ("http://127.0.0.1:80", "http://127.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1:443", "http://127.0.0.1:443/", "127.0.0.1:443"),
        ("http://[::1]:4443", "http://[::1]:4443/", "[::1]:4443"),
        ("https://p.example/gcs/", "https://p.example/gcs/", "p.example"),
    ],
)
def test_host_is_signed_as_clients_send_it(endpoint, origin, host):
    made = form(place=Place.at(endpoint))
    (url,) = spliced(made.filled([b"\0"]), Paths.of(["a"]))

    assert made.origin == f"{origin}lake/sales/orders/"
    assert f"\nhost:{host}\n".encode() in made.after
    assert read(url).message == made.messages([b"a"])[0]


def test_no_signature_and_no_key_shows_in_a_repr():
    assert "X-Goog" not in repr(form())
    assert "ab" * 4 not in repr(form().filled([b"\xab" * 4]))
