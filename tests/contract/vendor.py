"""What every vendor's storage does, whatever store is behind it.

A vendor joins by a harness: its storage, opened on a store that the suite can write to and fetch from.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import quote, unquote

import pytest

from gateway.domain.file_path import Paths, encode_path
from gateway.domain.location import Location, parse_location
from gateway.domain.window import Window
from gateway.errors import NotFound
from gateway.ports import LogReader, Signer, Storage

# Query keys by which delta-kernel tells a presigned URL from a path.
PRESIGNED = {"sp", "X-Amz-Signature", "X-Goog-Credential"}
LIFE = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Fetched:
    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str]


class ReaderHarness(Protocol):
    @property
    def storage(self) -> Storage: ...

    def location(self, directory: str) -> Location:
        """Return the location of a directory below the storage's prefix; of the prefix for an empty one."""

    async def put(self, location: Location, path: str, content: bytes) -> None:
        """Store an object as the table's owner would."""


class SignerHarness(ReaderHarness, Protocol):
    """Its storage is opened by a process that signs, so with sessions."""

    async def fetch(self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Fetched:
        """Send the request with an HTTP client that is given the URL as text, and no credential."""


# Names that a URL, a pattern or a listing could take for something else.
AWKWARD = (
    "a*b",
    "f?o",
    "${x}",
    "it's",
    "50%",
    "%41bc",
    "a b",
    "a+b",
    "é",
    "naïve-日本",
    "#1",
    "a,b;c&d=e",
)
AWKWARD_FILES = (
    "date=2021-04-28/part 0+é%20.parquet",
    "a%2Fb",
    "%25",
    "~-._",
    "x=%C3%A9",
    "[{|}]^`",
    "a:b@c!",
)
# What some of them would be if they were decoded once too often, or taken for patterns.
VICTIMS = ("aab", "foo", "Abc", "x", "a/b", "%", "1", "e")
# As the protocol of the log names its files, in the order of a listing.
LOG = (
    "00000000000000000000.crc",
    "00000000000000000000.json",
    "00000000000000000001.00000000000000000002.compacted.json",
    "00000000000000000001.json",
    "00000000000000000002.checkpoint.0000000001.0000000002.parquet",
    "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
    "00000000000000000002.checkpoint.parquet",
    "00000000000000000002.json",
    "_last_checkpoint",
)
# Names of the log, and names between them.
STARTS = (
    *LOG,
    *("0", "00000000000000000001", "00000000000000000001.", "00000000000000000002.checkpoint"),
    *("00000000000000000002.json0", "00000000000000000003.json", "_", "_last_checkpoint0", "~"),
)
# More than a store lists in one answer.
MANY = 1100
# More than a signer signs without leaving the loop to others.
LARGE = 2000
# How a store says that it does not take a request as it is.
REFUSED = {400, 401, 403, 405}


class ReaderContract:
    """Tests over a fixture ``harness``, for what reads a table's log as the gateway itself."""

    async def test_log_of_a_table_without_one_is_empty(self, harness):
        table = _table(harness)
        assert await _reader(harness).list_log(table, start="") == []
        await harness.put(table, "part-0.parquet", b"rows")

        assert await _reader(harness).list_log(table, start="") == []

    async def test_log_is_listed_by_name_from_a_start(self, harness):
        table = _table(harness)
        for name in ("2.json", "0.json", "1.json", "1.checkpoint.parquet"):
            await harness.put(table, f"_delta_log/{name}", name.encode())
        await harness.put(table, "part-0.parquet", b"rows")
        await harness.put(parse_location(f"{table.text}2"), "_delta_log/9.json", b"sibling")

        listed = await _reader(harness).list_log(table, start="")

        assert [file.name for file in listed] == ["0.json", "1.checkpoint.parquet", "1.json", "2.json"]
        assert [file.size for file in listed] == [6, 20, 6, 6]
        assert all(abs(file.modified_at - _now()) < timedelta(minutes=5) for file in listed)
        assert await _names(harness, table, "1.json") == ["1.json", "2.json"]

    async def test_listing_begins_at_a_name_or_where_it_would_stand(self, harness):
        table = _table(harness)
        await asyncio.gather(*(harness.put(table, f"_delta_log/{name}", b"{}") for name in LOG))

        listed = {start: await _names(harness, table, start) for start in STARTS}

        assert listed == {start: [name for name in LOG if name >= start] for start in STARTS}

    async def test_what_lies_deeper_or_beside_the_log_is_no_part_of_it(self, harness):
        table = _table(harness)
        for path in ("_delta_log/0.json", "_delta_log/_sidecars/a.parquet", "_delta_log/_commits/1.json"):
            await harness.put(table, path, b"{}")
        for path in ("_delta_log2/9.json", "_delta_log.json", "sub/_delta_log/8.json"):
            await harness.put(table, path, b"{}")

        assert await _names(harness, table) == ["0.json"]

    async def test_long_log_is_listed_whole(self, harness):
        table = _table(harness)
        names = [f"{number:020}.json" for number in range(MANY)]
        await asyncio.gather(*(harness.put(table, f"_delta_log/{name}", b"{}") for name in names))

        assert await _names(harness, table) == names
        assert await _names(harness, table, names[20]) == names[20:]
        assert await _names(harness, table, names[-1]) == names[-1:]

    @pytest.mark.parametrize("content", [b"", b"content" * 100_000], ids=["empty", "long"])
    async def test_log_file_is_read_whole(self, harness, content):
        table = _table(harness)
        await harness.put(table, "_delta_log/0.json", content)

        assert await _reader(harness).read_log(table, "0.json") == content
        assert [file.size for file in await _reader(harness).list_log(table, start="")] == [len(content)]

    async def test_log_file_that_was_replaced_is_read_as_it_is_now(self, harness):
        table = _table(harness)
        await harness.put(table, "_delta_log/_last_checkpoint", b"one")
        first = await _reader(harness).read_log(table, "_last_checkpoint")
        await harness.put(table, "_delta_log/_last_checkpoint", b"another")

        assert first == b"one"
        assert await _reader(harness).read_log(table, "_last_checkpoint") == b"another"

    async def test_log_file_that_is_not_there_is_not_found(self, harness):
        table = _table(harness)
        with pytest.raises(NotFound):
            await _reader(harness).read_log(table, "0.json")
        await harness.put(table, "_delta_log/0.json", b"{}")
        await harness.put(table, "_delta_log/_sidecars/a.parquet", b"{}")

        # A name that is longer, shorter, or that of a directory.
        for name in ("1.json", "0.json2", "0.jso", "_sidecars"):
            with pytest.raises(NotFound):
                await _reader(harness).read_log(table, name)

    async def test_awkward_names_are_read_as_they_are(self, harness):
        beside = _table(harness)
        for victim in ("aab", "foo", "Abc", "x"):
            await harness.put(beside, f"{victim}/_delta_log/{victim}", b"victim")
        tables = {name: parse_location(f"{beside.text}/{name}") for name in AWKWARD}
        for name, table in tables.items():
            await harness.put(table, f"_delta_log/{name}", name.encode())

        found = {
            name: (
                await _names(harness, table),
                await _names(harness, table, name),
                await _reader(harness).read_log(table, name),
            )
            for name, table in tables.items()
        }

        assert found == {name: ([name], [name], name.encode()) for name in AWKWARD}


class SignerContract:
    """Tests over a fixture ``harness``, for URLs that whoever has them can read one file with."""

    @pytest.mark.parametrize("directory", ["", "sales/orders", "50%20off/é=1 +&'"])
    async def test_signed_url_serves_its_file(self, harness, directory):
        table = harness.location(directory)
        name = f"date=2021-04-28/part {secrets.token_hex(4)}+é%20.parquet"
        await harness.put(table, name, b"0123456789")

        (url,) = await signed(harness, table, name)
        fetched = await harness.fetch(url)

        assert (fetched.status, fetched.body) == (200, b"0123456789")

    async def test_url_of_an_awkward_name_serves_that_very_file(self, harness):
        """AT-51: each stands beside what a client or store would find by decoding or matching its name."""
        table = _table(harness)
        names = [*AWKWARD, *(f"in {name}/{name}" for name in AWKWARD), *AWKWARD_FILES]
        for name in (*names, *VICTIMS):
            await harness.put(table, name, name.encode())

        for name, url in zip(names, await signed(harness, table, *names), strict=True):
            fetched = await harness.fetch(url)
            assert (fetched.status, fetched.body.decode()) == (200, name)

    async def test_signed_url_serves_ranges(self, harness):
        table = _table(harness)
        await harness.put(table, "a", b"0123456789")
        (url,) = await signed(harness, table, "a")

        part = await harness.fetch(url, headers={"Range": "bytes=2-5"})

        assert (part.status, part.body) == (206, b"2345")
        assert part.headers["Content-Range"] == "bytes 2-5/10"

    async def test_urls_are_made_of_columns_in_the_order_of_the_paths(self, harness):
        table = _table(harness)
        names = [f"part-{number}" for number in range(20)]
        for name in names:
            await harness.put(table, name, name.encode())

        urls = await signed(harness, table, *names)

        assert [(await harness.fetch(url)).body.decode() for url in urls] == names

    async def test_each_url_of_a_large_page_is_its_own(self, harness):
        table = _table(harness)
        names = [f"part-{number:05}" for number in range(LARGE)]
        for name in (names[0], names[-1]):
            await harness.put(table, name, name.encode())

        urls = await signed(harness, table, *names)

        assert len(set(urls)) == LARGE
        for number in (0, -1):
            assert (await harness.fetch(urls[number])).body.decode() == names[number]

    async def test_url_looks_presigned_to_clients(self, harness):
        (url,) = await signed(harness, harness.location("t"), "a")

        assert PRESIGNED & {pair.partition("=")[0] for pair in url.partition("?")[2].split("&")}

    async def test_columns_need_no_escaping_in_json(self, harness):
        urls = await signed(harness, harness.location("50%20off/é=1 +&'"), 'quote"back', "new line")

        assert all(url.isascii() and url.isprintable() and not set('"\\<> ') & set(url) for url in urls)

    async def test_file_that_is_not_there_is_an_error(self, harness):
        table = _table(harness)
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "gone")

        assert (await harness.fetch(url)).status in {403, 404}

    async def test_url_opens_no_other_file_and_allows_no_writing(self, harness):
        table = _table(harness)
        await harness.put(table, "a", b"rows")
        await harness.put(table, "b", b"secret")
        url, other = await signed(harness, table, "a", "b")

        # The path of one with the signature of the other.
        for forged in (f"{other.partition('?')[0]}?{url.partition('?')[2]}", url.replace("/a?", "/A?")):
            assert (await harness.fetch(forged)).status == 403
        for method in ("PUT", "DELETE", "POST"):
            assert (await harness.fetch(url, method)).status in REFUSED
        assert (await harness.fetch(url.partition("?")[0])).status in {*REFUSED, 404, 409}
        assert (await harness.fetch(url)).body == b"rows"
        assert (await harness.fetch(other)).body == b"secret"

    async def test_url_of_which_anything_was_changed_or_left_out_is_refused(self, harness):
        table = _table(harness)
        await harness.put(table, "a", b"rows")
        (url,) = await signed(harness, table, "a")

        for name, tampered in tampered_urls(url):
            fetched = await harness.fetch(tampered)
            assert fetched.status in REFUSED, name
            assert b"rows" not in fetched.body, name
        assert (await harness.fetch(url)).status == 200

    async def test_url_that_has_expired_is_refused(self, harness):
        table = _table(harness)
        await harness.put(table, "a", b"rows")

        (url,) = await signed(harness, table, "a", started_at=_now() - LIFE - timedelta(minutes=1))

        assert (await harness.fetch(url)).status in {400, 403}

    async def test_reported_expiration_is_never_later_than_the_windows(self, harness):
        window = _window(_now())

        signatures = await _signer(harness).sign(harness.location("t"), Paths.of(["a"]), window)

        assert _now() < signatures.expires_at <= window.expires_at
        assert signatures.expires_at.microsecond == 0

    async def test_same_window_gives_the_same_urls(self, harness):
        started_at = _now()

        first = await signed(harness, harness.location("t"), "a", "b", started_at=started_at)

        assert await signed(harness, harness.location("t"), "a", "b", started_at=started_at) == first

    async def test_nothing_to_sign_gives_no_signatures(self, harness):
        signatures = await _signer(harness).sign(harness.location("t"), Paths.of([]), _window(_now()))

        assert signatures.signatures == b""


async def signed(
    harness: SignerHarness, table: Location, *paths: str, started_at: datetime | None = None
) -> list[str]:
    """Return the URLs of paths below a table, spliced as the edge does it."""
    encoded = [encode_path(path) for path in paths]
    signatures = await _signer(harness).sign(table, Paths.of(encoded), _window(started_at or _now()))
    pairs = zip(encoded, signatures.signatures.decode().split("\n"), strict=True)
    return [f"{signatures.origin}{path}?{signatures.query}{signature}" for path, signature in pairs]


def tampered_urls(url: str) -> Iterator[tuple[str, str]]:
    """Yield the URL with each of its parameters changed and left out, by what was done."""
    place, _, query = url.partition("?")
    pairs = query.split("&")
    for number, pair in enumerate(pairs):
        name, _, value = pair.partition("=")
        # Its first letter: the last one of some signatures has bits that nobody reads.
        text = unquote(value)
        changed = f"{name}={quote(_another(text[0]) + text[1:], safe='')}"
        yield f"{name} changed", f"{place}?{'&'.join([*pairs[:number], changed, *pairs[number + 1 :]])}"
        yield f"{name} left out", f"{place}?{'&'.join(pairs[:number] + pairs[number + 1 :])}"


def _another(letter: str) -> str:
    """Return another letter that is as good at its place."""
    if letter.isdigit():
        return str(int(letter) % 9 + 1)
    return "b" if letter == "a" else "a"


def _table(harness: ReaderHarness) -> Location:
    """Return a directory that no other test uses."""
    return harness.location(f"{secrets.token_hex(4)}/sales/orders")


async def _names(harness: ReaderHarness, table: Location, start: str = "") -> list[str]:
    return [file.name for file in await _reader(harness).list_log(table, start=start)]


def _reader(harness: ReaderHarness) -> LogReader:
    assert harness.storage.reader is not None
    return harness.storage.reader


def _signer(harness: SignerHarness) -> Signer:
    assert harness.storage.signer is not None
    return harness.storage.signer


def _window(started_at: datetime) -> Window:
    return Window(started_at, started_at + LIFE / 4, started_at + LIFE)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
