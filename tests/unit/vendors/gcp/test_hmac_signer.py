from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.file_path import Paths
from gateway.domain.location import parse_location
from gateway.errors import Unavailable, Unsupported
from gateway.ports import SigningCost
from tests.cases import each_case
from tests.doubles.gcp_signed_url import BadUrl
from tests.hypothesis_profiles import examples
from tests.unit.vendors.gcp.signed import (
    HOUR,
    KEYS,
    LIVES,
    PLACE,
    TABLES,
    WINDOW,
    read,
    spliced,
    urls_of,
    window_of,
)
from vendors.gcp.config import HmacOptions
from vendors.gcp.hmac_signer import HmacSigner

TABLE = parse_location("gs://lake/sales/orders")
ACCESS_ID = "GOOG1EXAMPLE"
SECRET = "bGoa+V7g/yqDXvKRqq+JTFn4uQZbPiQJo4pf9RzJ"


def signer(secret: str = SECRET) -> HmacSigner:
    return made({"value": secret})


def made(secret: object) -> HmacSigner:
    options = {"kind": "hmac", "accessId": ACCESS_ID, "secret": secret}
    return HmacSigner(HmacOptions.model_validate(options), PLACE)


@settings(max_examples=examples(2))
@given(table=TABLES, keys=KEYS, life=LIVES, secret=st.text(max_size=80))
async def test_urls_are_believed_by_what_was_written_from_googles_documentation(table, keys, life, secret):
    paths = Paths.of(quote(name, safe="/") for name in keys)
    signed = await signer(secret).sign(table, paths, window_of(life))

    for url in spliced(signed, paths):
        read(url).check_secret(secret)
        assert read(url).valid_to == signed.expires_at


async def test_columns_name_the_algorithm_and_the_access_id():
    (url,) = await urls_of(signer(), TABLE, "a b")

    head = "https://storage.googleapis.com/lake/sales/orders/a%20b?X-Goog-Algorithm=GOOG4-HMAC-SHA256"
    assert url.startswith(
        f"{head}&X-Goog-Credential=GOOG1EXAMPLE%2F20261116%2Fauto%2Fstorage%2Fgoog4_request&"
    )


async def test_signature_is_the_one_that_openssl_makes_by_the_steps_of_the_documentation():
    (url,) = await urls_of(signer("secret"), TABLE, "part-0.parquet")

    assert url.rpartition("=")[2] == "65f829c2592d2c656239c40094154dbdb956e80ab6d117c1ce497c23c13a925c"


async def test_url_is_not_believed_for_another_file_method_or_secret():
    (url,) = await urls_of(signer(), TABLE, "a")

    read(url).check_secret(SECRET)
    for other in (read(url, "PUT"), read(url.replace("/a?", "/b?")), read(url.replace("=3600", "=7200"))):
        with pytest.raises(BadUrl):
            other.check_secret(SECRET)
    with pytest.raises(BadUrl):
        read(url).check_secret(f"{SECRET}x")


@each_case("count", [0, 1, 1000, 2500])
async def test_each_path_gets_its_own_signature_in_order(count):
    urls = await urls_of(signer(), TABLE, *(f"part-{number}" for number in range(count)))

    assert [url.partition("?")[0].rpartition("-")[2] for url in urls] == [str(n) for n in range(count)]
    for url in urls:
        read(url).check_secret(SECRET)


async def test_secret_that_was_replaced_is_used_from_then_on(tmp_path):
    file = tmp_path / "secret"
    file.write_text("first\n")
    one = made({"file": str(file)})
    (first,) = await urls_of(one, TABLE, "a")
    file.write_text("second\n")
    (second,) = await urls_of(one, TABLE, "a")

    read(first).check_secret("first")
    read(second).check_secret("second")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not text"])
async def test_secret_that_cannot_be_read_is_unavailable_and_logged(tmp_path, caplog, content):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(Unavailable):
        await urls_of(made({"file": str(file)}), TABLE, "a")
    assert "no HMAC key to sign with" in caplog.text


async def test_more_than_seven_days_are_refused():
    with pytest.raises(Unsupported):
        await urls_of(signer(), TABLE, "a", window=window_of(HOUR * 24 * 8))


async def test_reported_expiration_is_the_windows_and_no_secret_shows(caplog):
    signed = await signer().sign(TABLE, Paths.of(["a"]), WINDOW)

    assert signed.expires_at == WINDOW.expires_at
    assert (signer().cost, signer().has_sessions) == (SigningCost.HASH, False)
    assert SECRET not in repr(signed) + repr(signer()) + repr(signer().__dict__) + caplog.text
