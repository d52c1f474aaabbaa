from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.key import Key, Keys
from gateway.domain.local_url import LocalUrl, parse, root_key, shared_query, sign, verify
from tests.cases import each_case

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
END = int((NOON + timedelta(hours=1)).timestamp())
KEY = Key(id="k1", secret=b"s" * 32)
OTHER = Key(id="k2", secret=b"t" * 32)
KEYS = Keys(current=KEY)
ROOT = "/data/lake"


def signed(path: str = "sales/orders/part-0.parquet", *, key: Key = KEY) -> tuple[str, str, str]:
    """Return storage, path and query of a signed URL, as they stand in it."""
    directory, _, file = path.rpartition("/")
    (signature,) = sign(
        root_key(key, ROOT), "lake", f"{directory}/", [file.encode()], depth=2, expires_at=END
    )
    return "lake", path, shared_query(key, 2, END) + signature


def parsed(*parts: str) -> LocalUrl:
    url = parse(*parts)
    assert url is not None
    return url


def test_url_that_was_signed_is_believed_until_it_expires():
    url = parsed(*signed())

    assert url.expires_at == END
    assert url.depth == 2
    assert verify(url, ROOT, KEYS, NOON)
    assert verify(url, ROOT, KEYS, datetime.fromtimestamp(END - 1, tz=UTC))


def test_url_is_dead_in_the_second_it_expires():
    url = parsed(*signed())

    assert not verify(url, ROOT, KEYS, datetime.fromtimestamp(END, tz=UTC))


def test_query_looks_presigned_to_clients():
    _, _, query = signed()

    assert query.startswith("sp=r&")


@each_case(
    "change",
    [
        {"storage": "lake2"},
        {"path": "sales/orders/part-1.parquet"},
        {"path": "sales/orders/PART-0.parquet"},
        {"depth": 1},
        {"depth": 0},
        {"expires_at": END + 1},
        {"key_id": "k2"},
        {"key_id": "k3"},
        {"signature": "A" * 43},
    ],
    ids=str,
)
def test_url_that_was_changed_anywhere_is_not_believed(change):
    url = parsed(*signed())

    assert not verify(replace(url, **change), ROOT, Keys(current=KEY, previous=OTHER), NOON)


@each_case("root", ["/data", "/data/lake2", "/", ""])
def test_url_does_not_follow_its_storage_to_another_place(root):
    assert not verify(parsed(*signed()), root, KEYS, NOON)


def test_signature_of_the_previous_key_is_still_believed():
    url = parsed(*signed(key=OTHER))

    assert verify(url, ROOT, Keys(current=KEY, previous=OTHER), NOON)
    assert not verify(url, ROOT, Keys(current=KEY), NOON)


def test_signature_is_compared_as_text_so_that_it_has_no_second_spelling():
    storage, path, query = signed()
    # The last character carries two bits that the mac does not use.
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    respelled = query[:-1] + alphabet[alphabet.index(query[-1]) ^ 1]

    assert not verify(parsed(storage, path, respelled), ROOT, KEYS, NOON)


def test_spelling_that_a_client_chose_names_the_path_that_was_signed():
    storage, _, query = signed("t/date%3D2021/a%20b.parquet")

    assert verify(parsed(storage, "t/date=2021/a%20b.parquet", query), ROOT, KEYS, NOON)
    assert verify(parsed(storage, "%74/date%3d2021/a%20b.parquet", query), ROOT, KEYS, NOON)


@each_case(
    "query",
    [
        "",
        "sp=r",
        "sp=r&sdd=2&se=9999999999&kid=k1",
        "sp=r&sdd=2&se=9999999999&kid=k1&sig=",
        "sp=r&sdd=2&se=9999999999&kid=k1&sig={sig}&x=1",
        "sp=r&sp=r&sdd=2&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=2&se=9999999999&se=9999999999&kid=k1&sig={sig}",
        "sp=rw&sdd=2&se=9999999999&kid=k1&sig={sig}",
        "sp=w&sdd=2&se=9999999999&kid=k1&sig={sig}",
        "SP=r&sdd=2&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=02&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=-1&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=+2&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=%32&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=٢&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=2&se=9e9&kid=k1&sig={sig}",
        "sp=r&sdd=2&se=99999999999999999999999999&kid=k1&sig={sig}",
        "sp=r&sdd=2&se=9999999999&kid=&sig={sig}",
        "sp=r&sdd=2&se=9999999999&kid=k%31&sig={sig}",
        "sp=r&sdd=2&se=9999999999&kid=\udc80&sig={sig}",
        "sp=r&sdd=2&se=9999999999&kid=k1&sig={sig}%3D",
        "sp=r;sdd=2;se=9999999999;kid=k1;sig={sig}",
        "&sp=r&sdd=2&se=9999999999&kid=k1&sig={sig}",
        "sp=r&sdd=2&se=9999999999&kid=k1&sig={sig}\n",
    ],
)
def test_query_that_we_do_not_write_is_not_read(query):
    assert parse("lake", "a/b", query.replace("{sig}", "A" * 43)) is None


def test_parameters_may_come_in_any_order():
    storage, path, query = signed()

    assert verify(parsed(storage, path, "&".join(reversed(query.split("&")))), ROOT, KEYS, NOON)


@each_case("storage", ["", "Lake", "..", "%6Cake", "lake ", "l\nake", "\udc80"])
def test_storage_name_that_cannot_be_one_is_not_read(storage):
    _, path, query = signed()

    assert parse(storage, path, query) is None


@each_case("path", ["", "a/../b", "a%2Fb", "a%00", "a//b", "%FF", "a/", "\udc80"])
def test_path_that_is_ambiguous_is_not_read(path):
    storage, _, query = signed()

    assert parse(storage, path, query) is None


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=80))
def test_whatever_is_sent_is_read_or_not_without_an_error(storage, path, query):
    url = parse(storage, path, query)

    assert url is None or not verify(url, ROOT, KEYS, NOON)


def test_signature_is_not_printed():
    _, _, query = signed()

    assert query[-43:] not in repr(parsed(*signed()))
