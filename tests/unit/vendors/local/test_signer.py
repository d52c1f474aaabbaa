from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest

from gateway.domain import local_url
from gateway.domain.file_path import Paths, encode_path
from gateway.domain.key import Key, Keys
from gateway.domain.location import parse_location
from gateway.domain.window import URL_PARTS, window_at
from gateway.ports import Signatures, StorageSettings
from vendors.local.signer import LocalSigner

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
KEYS = Keys(current=Key(id="k1", secret=b"s" * 32), previous=Key(id="k0", secret=b"p" * 32))
WINDOW = window_at(NOON, timedelta(hours=1), URL_PARTS, b"table")


def signer(prefix: str = "/data/lake", public_url: str = "https://h/delta-sharing") -> LocalSigner:
    settings = StorageSettings(
        name="disk", prefix=parse_location(prefix), public_url=public_url, url_keys=KEYS
    )
    return LocalSigner(settings, KEYS)


def urls(signed: Signatures, paths: list[str]) -> list[str]:
    pairs = zip(paths, signed.signatures.decode().split("\n"), strict=True)
    return [f"{signed.origin}{path}?{signed.query}{signature}" for path, signature in pairs]


def believed(url: str, mount: str = "/delta-sharing/files/", root: str = "/data/lake") -> bool:
    parts = urlsplit(url)
    storage, _, path = parts.path.removeprefix(mount).partition("/")
    parsed = local_url.parse(storage, path, parts.query)
    return parsed is not None and local_url.verify(parsed, root, KEYS, NOON)


async def test_url_leads_to_the_file_below_the_table_below_the_storage():
    signed = await signer().sign(
        parse_location("/data/lake/sales/orders"), Paths.of(["a%20b.parquet"]), WINDOW
    )

    (url,) = urls(signed, ["a%20b.parquet"])
    assert signed.origin == "https://h/delta-sharing/files/disk/sales/orders/"
    assert url.startswith("https://h/delta-sharing/files/disk/sales/orders/a%20b.parquet?sp=r&sdd=2&se=")
    assert believed(url)


async def test_table_at_the_prefix_itself_is_signed():
    signed = await signer().sign(parse_location("/data/lake"), Paths.of(["part-0.parquet"]), WINDOW)

    assert signed.origin == "https://h/delta-sharing/files/disk/"
    assert "&sdd=0&" in signed.query
    assert believed(urls(signed, ["part-0.parquet"])[0])


async def test_storage_of_the_whole_file_system_is_signed():
    signed = await signer("/").sign(parse_location("/data/t"), Paths.of(["a"]), WINDOW)

    assert signed.origin == "https://h/delta-sharing/files/disk/data/t/"
    assert believed(urls(signed, ["a"])[0], root="/")


async def test_directory_of_the_table_is_percent_encoded():
    signed = await signer().sign(parse_location("/data/lake/50%20off/é=1"), Paths.of(["a"]), WINDOW)

    assert signed.origin.endswith("/files/disk/50%2520off/%C3%A9%3D1/")
    assert believed(urls(signed, ["a"])[0])


async def test_trailing_slash_of_the_public_url_is_not_doubled():
    signed = await signer(public_url="http://h:8080/").sign(
        parse_location("/data/lake/t"), Paths.of(["a"]), WINDOW
    )

    assert signed.origin == "http://h:8080/files/disk/t/"


async def test_expiration_is_that_of_the_window_and_stands_in_the_query():
    signed = await signer().sign(parse_location("/data/lake/t"), Paths.of(["a"]), WINDOW)

    assert signed.expires_at == WINDOW.expires_at
    assert f"&se={int(WINDOW.expires_at.timestamp())}&" in signed.query


@pytest.mark.parametrize("count", [1, 1000, 2000], ids=["one", "page", "large"])
async def test_each_path_gets_its_own_signature_in_order(count):
    paths = [encode_path(f"date=2021-01-01/part {number}.parquet") for number in range(count)]

    signed = await signer().sign(parse_location("/data/lake/t"), Paths.of(paths), WINDOW)

    assert len(set(signed.signatures.split(b"\n"))) == count
    assert all(believed(url) for url in urls(signed, paths))


async def test_signature_of_one_file_does_not_open_another():
    paths = ["a", "b"]
    signed = await signer().sign(parse_location("/data/lake/t"), Paths.of(paths), WINDOW)

    assert not any(believed(url) for url in urls(signed, ["b", "a"]))


async def test_current_key_signs():
    signed = await signer().sign(parse_location("/data/lake/t"), Paths.of(["a"]), WINDOW)

    assert "&kid=k1&" in signed.query


async def test_result_is_the_same_for_all_that_ask_within_the_window():
    first = await signer().sign(parse_location("/data/lake/t"), Paths.of(["a"]), WINDOW)

    assert await signer().sign(parse_location("file:///data/lake/t/"), Paths.of(["a"]), WINDOW) == first
