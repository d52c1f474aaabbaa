from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.domain.credential import AwsTempCredentials, Credential, GcpOauthToken
from gateway.domain.file_path import Paths, encode_path
from gateway.domain.location import parse_location
from gateway.domain.window import Window
from gateway.errors import InvalidArgument, Unavailable, Unsupported
from gateway.ports import SigningCost
from tests.cases import each_case
from tests.unit.vendors.sdk import TOKEN, sdk_client, sdk_urls
from vendors import s3_signer
from vendors.s3_address import Place
from vendors.s3_signer import S3Signer
from vendors.sigv4 import sign_urls

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
TABLE = parse_location("s3://lake/sales/orders")
KEYS = AwsTempCredentials(access_key_id="AKIA1", secret_access_key="secret", session_token="")
PLACE = Place(url="https://lake.s3.eu-central-1.amazonaws.com", region="eu-central-1")


@dataclass
class Source:
    """Gives the same keys for each window, and ends them where a test says so."""

    secret: AwsTempCredentials | GcpOauthToken = KEYS
    ends_at: datetime | None = None
    place: Place = PLACE
    asked: list[Window] = field(default_factory=list)
    searches: int = 0

    async def obtain(self, window: Window) -> Credential:
        self.asked.append(window)
        return Credential(id="x", secret=self.secret, expires_at=self.ends_at or window.expires_at)

    async def find_place(self) -> Place:
        self.searches += 1
        return self.place

    def signer(self, prefix: str = "s3://lake", *, has_sessions: bool = False) -> S3Signer:
        return S3Signer(
            prefix=parse_location(prefix),
            find_place=self.find_place,
            obtain=self.obtain,
            has_sessions=has_sessions,
        )


async def urls(source: Source, *names: str, window: Window = WINDOW, table: str = TABLE.text) -> list[str]:
    paths = [encode_path(name) for name in names]
    signed = await source.signer().sign(parse_location(table), Paths.of(paths), window)
    pairs = zip(paths, signed.signatures.decode().split("\n"), strict=True)
    return [f"{signed.origin}{path}?{signed.query}{signature}" for path, signature in pairs]


@each_case("token", ["", TOKEN])
@each_case("table", ["s3://lake", "s3://lake/sales/orders", "s3://lake/50%20off/é=1 +&'#"])
@each_case("style", ["virtual", "path"])
async def test_columns_make_the_urls_of_the_sdk(token, table, style):
    secret = AwsTempCredentials(access_key_id="AKIA1", secret_access_key="secret", session_token=token)
    at_path = Place(url="https://s3.eu-central-1.amazonaws.com", bucket_in_path="lake", region="eu-central-1")
    source = Source(secret=secret, place=PLACE if style == "virtual" else at_path)
    names = ["date=2021-04-28/part 0+é%20.parquet", "#?.parquet", "a//b"]
    client = sdk_client(
        region="eu-central-1",
        access_key_id="AKIA1",
        secret="secret",
        token=token,
        addressing_style=style,
    )
    above = parse_location(table).path
    keys = [f"{above}/{name}" if above else name for name in names]

    ours = await urls(source, *names, table=table)

    assert ours == sdk_urls(client, "lake", keys, signed_at=NOON, life=HOUR)


# AT-37
@each_case(
    ("ends_at", "expires_at"),
    [
        (NOON + timedelta(minutes=20), NOON + timedelta(minutes=20)),
        (NOON + timedelta(minutes=20, milliseconds=999), NOON + timedelta(minutes=20)),
        (NOON + HOUR - timedelta(milliseconds=1), NOON + HOUR - timedelta(seconds=1)),
        (NOON + HOUR, NOON + HOUR),
        (NOON + 2 * HOUR, NOON + HOUR),
    ],
)
async def test_url_ends_with_its_window_or_with_the_session_that_signed_it(ends_at, expires_at):
    signed = await Source(ends_at=ends_at).signer().sign(TABLE, Paths.of(["a"]), WINDOW)

    query = parse_qs(signed.query)
    assert signed.expires_at == expires_at
    assert query["X-Amz-Date"] == ["20261116T120000Z"]
    assert query["X-Amz-Expires"] == [str((expires_at - NOON) // timedelta(seconds=1))]


@pytest.mark.parametrize("ends_at", [NOON, NOON - HOUR, NOON + timedelta(milliseconds=999)])
async def test_session_that_is_over_signs_nothing(ends_at):
    with pytest.raises(Unavailable, match="over"):
        await Source(ends_at=ends_at).signer().sign(TABLE, Paths.of(["a"]), WINDOW)


async def test_window_between_seconds_is_counted_in_whole_ones():
    start = NOON + timedelta(milliseconds=700)
    window = Window(start, start + HOUR / 4, start + HOUR)

    signed = await Source().signer().sign(TABLE, Paths.of(["a"]), window)

    assert signed.expires_at == NOON + HOUR
    assert parse_qs(signed.query)["X-Amz-Expires"] == ["3600"]


async def test_urls_of_a_week_are_signed_and_longer_ones_refused():
    week = timedelta(days=7)
    signed = await Source().signer().sign(TABLE, Paths.of(["a"]), Window(NOON, NOON + HOUR, NOON + week))

    assert parse_qs(signed.query)["X-Amz-Expires"] == ["604800"]
    longer = Window(NOON, NOON + HOUR, NOON + week + timedelta(seconds=1))
    source = Source()
    with pytest.raises(Unsupported, match="a week at most"):
        await source.signer().sign(TABLE, Paths.of(["a"]), longer)
    assert source.asked == []


@each_case("count", [0, 1, 1500, 1501, 4000])
async def test_each_path_gets_its_own_signature_in_order(count):
    names = [f"part {number}.parquet" for number in range(count)]
    paths = Paths.of(encode_path(name) for name in names)

    signed = await Source().signer().sign(TABLE, paths, WINDOW)

    assert len(signed) == count
    found = signed.signatures.split(b"\n") if count else []
    assert len(set(found)) == count
    for number in {0, count // 2, count - 1} if count else ():
        alone = await Source().signer().sign(TABLE, Paths.of([encode_path(names[number])]), WINDOW)
        assert alone.signatures == found[number]


@pytest.mark.parametrize(("count", "in_place"), [(1500, True), (1501, False)])
async def test_large_batches_leave_the_loop_to_others(monkeypatch, count, in_place):
    threads = []

    def noting(*arguments: object) -> bytes:
        threads.append(threading.current_thread())
        return sign_urls(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(s3_signer, "sign_urls", noting)
    await Source().signer().sign(TABLE, Paths.of(map(str, range(count))), WINDOW)

    assert (threads == [threading.main_thread()]) is in_place


async def test_result_is_the_same_for_all_that_ask_within_the_window():
    paths = Paths.of(["a", "b"])
    first = await Source().signer().sign(TABLE, paths, WINDOW)

    assert await Source().signer().sign(parse_location("s3a://lake/sales/orders/"), paths, WINDOW) == first


async def test_place_is_looked_for_once_and_keys_each_time():
    source = Source()
    signer = source.signer()
    for _ in range(3):
        await signer.sign(TABLE, Paths.of(["a"]), WINDOW)

    assert source.searches == 1
    assert source.asked == [WINDOW] * 3


async def test_table_of_another_storage_is_not_signed():
    signer = Source().signer("s3://lake/sales")
    for elsewhere in ("s3://other/sales/orders", "s3://lake/sales2", "s3://lake"):
        with pytest.raises(InvalidArgument):
            await signer.sign(parse_location(elsewhere), Paths.of(["a"]), WINDOW)


async def test_keys_of_another_kind_are_refused():
    with pytest.raises(Unsupported):
        await urls(Source(secret=GcpOauthToken(oauth_token="t")), "a")


async def test_signatures_do_not_print_what_signed_them():
    secret = AwsTempCredentials(access_key_id="AKIA1", secret_access_key="hush", session_token=TOKEN)
    signed = await Source(secret=secret).signer().sign(TABLE, Paths.of(["a"]), WINDOW)

    assert TOKEN[:20] not in repr(signed)
    assert "hush" not in repr(signed)


async def test_url_is_one_that_clients_take_for_presigned():
    (url,) = await urls(Source(), "a")

    assert "X-Amz-Signature" in parse_qs(urlsplit(url).query)


def test_signature_is_a_hash_and_sessions_are_told():
    assert Source().signer().cost is SigningCost.HASH
    assert not Source().signer().has_sessions
    assert Source().signer(has_sessions=True).has_sessions
