from __future__ import annotations

import io
from datetime import timedelta

import pytest
from sluice_recipient.address import parse_name
from sluice_recipient.client import GatewayClient
from sluice_recipient.errors import NotFound, NotUsable, Refused, Unavailable
from sluice_recipient.listing import NeedsDeltaFormat
from sluice_recipient.profile import parse_profile
from sluice_recipient.url_files import UrlFiles

from tests.fakes.recipient_files import SCHEMA, FakeShare
from tests.fakes.recipient_transport import PROFILE

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
FILES = {"a": b"0123456789", "b": b"rows", "c": b""}


def open_files(share: FakeShare, version: int | str | None = None) -> UrlFiles:
    slept: list[float] = []
    client = GatewayClient(parse_profile(PROFILE), share, clock=share.clock, sleep=slept.append)
    return UrlFiles(client, parse_name("sales.shop.orders"), version)


def contents(files: UrlFiles) -> dict[str, bytes]:
    return {file.id: files.open(file).read() for file in files}


@pytest.fixture
def share() -> FakeShare:
    return FakeShare([FILES])


def test_all_files_of_the_version_are_there_with_their_contents(share):
    files = open_files(share)

    assert (len(files), files.version, files.schema) == (3, 0, SCHEMA)
    assert contents(files) == FILES


def test_files_come_in_pages_of_one_version(share):
    share.page_size = 2
    share.versions.append(FILES)

    assert contents(open_files(share)) == FILES
    first, second = share.queries
    assert first["includeRefreshToken"] is True
    # What is asked about refreshing is asked once.
    assert set(second) == {"pageToken", "maxFiles"}


def test_an_earlier_version_and_a_time_are_asked_for(share):
    share.versions.append({"z": b"later"})

    assert contents(open_files(share, 0)) == FILES
    open_files(share, "2026-01-31T00:00:00Z")
    assert [query.get("version", query.get("timestamp")) for query in share.queries] == [
        0,
        "2026-01-31T00:00:00Z",
    ]
    # The protocol has no refresh of what is asked for by version.
    assert not any("includeRefreshToken" in query for query in share.queries)


def test_a_file_is_read_in_pieces_from_anywhere(share):
    files = open_files(share)
    file = files.open(next(iter(files)))

    assert (file.seek(-4, io.SEEK_END), file.read(2)) == (6, b"67")
    assert (file.seek(-3, io.SEEK_CUR), file.tell(), file.read(1)) == (5, 5, b"5")
    assert (file.seek(0), file.read(3), file.read()) == (0, b"012", b"3456789")
    assert (file.seek(20), file.read(), file.readable(), file.seekable()) == (20, b"", True, True)


def test_a_store_that_knows_no_ranges_is_read_all_the_same(share):
    share.knows_ranges = False
    files = open_files(share)
    file = files.open(next(iter(files)))
    file.seek(4)

    assert file.read(2) == b"45"


def test_contents_come_in_the_order_of_the_files(share):
    share.versions = [{f"{number:03}": f"rows {number}".encode() for number in range(100)}]

    found = list(open_files(share).contents())

    assert [file.id for file, _ in found] == sorted(share.versions[0])
    assert {file.id: content for file, content in found} == share.versions[0]


def test_whoever_has_seen_enough_has_fetched_little_more(share):
    share.versions = [{f"{number:03}": b"rows" for number in range(100)}]
    contents = open_files(share).contents()
    next(contents)
    contents.close()

    assert len(share.fetched) <= 8


def test_large_files_are_fetched_one_by_one(share):
    share.versions = [{"a": b"0" * (64 << 20), "b": b"rows", "c": b"rows"}]
    contents = open_files(share).contents()
    next(contents)
    contents.close()

    assert share.fetched == ["a"]


def test_a_file_that_cannot_be_had_ends_the_contents(share):
    share.versions = [{f"{number:03}": b"rows" for number in range(20)}]
    files = open_files(share)
    del share.versions[0]["004"]

    with pytest.raises(NotFound):
        list(files.contents())


def test_an_empty_file_is_not_asked_for(share):
    files = open_files(share)
    (*_, empty) = files

    assert (empty.size, files.read(empty)) == (0, b"")
    assert share.fetched == []


def test_a_url_is_kept_until_a_quarter_of_an_hour_before_its_end(share):
    files = open_files(share)
    (file, *_) = files
    first = files.url(file)
    share.now += 44 * MINUTE
    assert files.url(file) == first

    share.now += MINUTE
    assert files.url(file) != first
    assert len(share.queries) == 2


def test_urls_are_renewed_by_the_refresh_token_and_stay_those_of_the_version(share):
    files = open_files(share)
    share.versions.append({"a": b"0123456789", "d": b"committed in the meantime"})
    share.now += HOUR

    assert contents(files) == FILES
    assert files.version == 0
    assert "refreshToken" in share.queries[-1]


def test_each_renewal_goes_on_from_the_token_of_the_one_before(share):
    files = open_files(share)
    share.versions.append({"z": b"later"})
    # Days: longer than any single token lives.
    for _ in range(60):
        share.now += HOUR
        assert contents(files) == FILES


def test_a_version_is_its_own_way_back(share):
    files = open_files(share, "2026-01-31T00:00:00Z")
    share.now += HOUR

    assert contents(files) == FILES
    assert share.queries[-1]["version"] == 0
    assert "refreshToken" not in share.queries[-1]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_url_that_the_store_refuses_before_its_time_is_renewed_at_once(share, status):
    files = open_files(share)
    share.now += MINUTE
    share.void_before, share.expired_status = share.now, status

    assert contents(files) == FILES
    assert len(share.queries) == 2


def test_one_renewal_serves_all_files(share):
    share.versions = [{str(number): b"rows" for number in range(50)}]
    files = open_files(share)
    share.now += MINUTE
    share.void_before = share.now

    contents(files)

    assert len(share.queries) == 2
    # The first file alone is asked for twice.
    assert len(share.fetched) == 51


def test_a_new_url_that_is_refused_is_an_error_and_not_tried_for_ever(share):
    files = open_files(share)
    share.void_before = share.now + HOUR

    with pytest.raises(Refused, match="HTTP 403"):
        contents(files)
    assert (len(share.queries), len(share.fetched)) == (2, 2)


def test_urls_of_a_short_life_are_renewed_at_half_of_it_and_not_at_each_read(share):
    share.life = MINUTE
    files = open_files(share)
    for _ in range(6):
        share.now += timedelta(seconds=10)
        contents(files)

    assert len(share.queries) == 3


def test_a_gateway_that_is_away_does_no_harm_while_the_urls_live(share):
    files = open_files(share)
    share.now += 50 * MINUTE
    share.is_away = True

    assert contents(files) == FILES
    share.now += 10 * MINUTE
    with pytest.raises(Unavailable, match="cannot reach"):
        contents(files)
    share.is_away = False
    assert contents(files) == FILES


def test_a_server_without_refresh_tokens_is_asked_anew(share):
    share.gives_refresh_tokens = False
    files = open_files(share)
    share.versions.append(FILES | {"d": b"added"})
    share.now += HOUR

    assert contents(files) == FILES
    assert (len(files), files.version) == (3, 0)


def test_an_old_refresh_token_is_no_hindrance_while_the_files_are_there(share):
    files = open_files(share)
    share.now += timedelta(hours=25)

    assert contents(files) == FILES
    assert [("refreshToken" in query) for query in share.queries] == [False, True, False]


def test_files_that_the_server_names_no_more_are_never_replaced_by_others(share):
    share.gives_refresh_tokens = False
    files = open_files(share)
    share.versions.append({"a": b"another", "d": b"added"})
    share.now += HOUR

    with pytest.raises(NotUsable, match="open it again"):
        contents(files)


def test_a_server_that_tells_no_expiration_is_believed_for_an_hour(share):
    share.tells_expirations = False
    files = open_files(share)
    share.now += 44 * MINUTE
    contents(files)
    assert len(share.queries) == 1

    share.now += MINUTE
    contents(files)
    assert len(share.queries) == 2


def test_a_busy_store_is_asked_again(share):
    files = open_files(share)
    share.hiccups = [503, 429, 500]

    assert contents(files) == FILES


def test_a_store_that_stays_busy_is_an_error(share):
    files = open_files(share)
    share.hiccups = [503] * 4

    with pytest.raises(Unavailable, match="HTTP 503"):
        contents(files)


def test_a_redirect_is_not_followed(share):
    files = open_files(share)
    share.hiccups = [307]

    with pytest.raises(Unavailable, match="HTTP 307"):
        contents(files)


def test_a_file_that_is_gone_is_said_to_be(share):
    files = open_files(share)
    share.versions = [{"b": b"rows", "c": b""}]

    with pytest.raises(NotFound, match="gone"):
        contents(files)


def test_a_file_that_is_shorter_than_was_told_is_an_error(share):
    files = open_files(share)
    share.versions = [FILES | {"a": b"01"}]

    with pytest.raises(Unavailable, match="less"):
        contents(files)


def test_a_table_that_needs_the_other_format_is_not_read_wrongly(share):
    share.response_format = "delta"

    with pytest.raises(NeedsDeltaFormat):
        open_files(share)


def test_urls_stand_in_no_repr(share):
    files = open_files(share)

    assert repr(files) == "UrlFiles('sales.shop.orders', version=0, files=3)"
    assert "s3cr3t" not in repr((vars(files), list(files)))
