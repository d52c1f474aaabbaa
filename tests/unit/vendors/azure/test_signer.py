from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest

from gateway.domain.file_path import Paths, encode_path
from gateway.domain.location import parse_location
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.errors import Unavailable, Unsupported
from gateway.ports import SigningCost, StorageSettings
from tests.fakes.sessions import FakeSessions
from tests.unit.vendors.azure.doubles import (
    ACCOUNT,
    NOON,
    FakeClock,
    FakeHttp,
    FakeTokens,
    account_key,
    answer_as_asked,
    delegation_key,
    key_answer,
    options,
)
from vendors.azure.account import Account
from vendors.azure.delegation_key import DelegationKeys
from vendors.azure.session_key import SessionKeys
from vendors.azure.signer import AzureSigner

HOST = "tables@lakeaccount.dfs.core.windows.net"
PREFIX = parse_location(f"abfss://{HOST}/shared")
TABLE = parse_location(f"abfss://{HOST}/shared/orders")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
WINDOW = Window(NOON, NOON + HOUR / 4, NOON + HOUR)
PATHS = Paths.of(["a", "b%20c"])


def signing(key=None, *, account: Account = ACCOUNT, prefix=PREFIX, **given_options) -> AzureSigner:
    """Return a signer that is given this key for every window."""
    settings = StorageSettings(name="lake", prefix=prefix, public_url="", clock=FakeClock())
    given_key = key or delegation_key()

    async def get_key(window):
        return given_key

    return AzureSigner(settings, options(**given_options), account, get_key, has_sessions=True)


def replica(sessions=None, answer=answer_as_asked, *, clock=None, **given_options):
    """Return a signer that asks for its keys, and the requests that it makes."""
    http = FakeHttp(answer)
    keys = DelegationKeys(
        storage="lake",
        endpoint=ACCOUNT.endpoint,
        options=options(**given_options),
        tokens=FakeTokens(),
        http=http,
        clock=clock or FakeClock(),
    )
    settings = StorageSettings(name="lake", prefix=PREFIX, public_url="")
    get_key = SessionKeys(sessions or FakeSessions(), keys.ask).get
    signer = AzureSigner(settings, options(**given_options), ACCOUNT, get_key, has_sessions=True)
    return http.requests, signer


def fields(signatures) -> dict[str, str]:
    found = parse_qs(signatures.query, keep_blank_values=True, strict_parsing=True)
    return {name: values[0] for name, values in found.items()}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


async def test_urls_lead_to_the_blob_service():
    signatures = await signing().sign(TABLE, PATHS, WINDOW)

    assert signatures.origin == "https://lakeaccount.blob.core.windows.net/tables/shared/orders/"
    assert len(signatures) == 2
    assert signatures.query.endswith("&sig=")


@pytest.mark.parametrize(
    ("prefix", "directory", "origin"),
    [
        (f"abfss://{HOST}", "", "https://lakeaccount.blob.core.windows.net/tables/"),
        (f"abfss://{HOST}", "/a b/%41/é=1", ".net/tables/a%20b/%2541/%C3%A9%3D1/"),
        ("wasbs://tables@lakeaccount.blob.core.windows.net", "/t", ".net/tables/t/"),
    ],
)
async def test_origin_is_the_directory_encoded_once(prefix, directory, origin):
    signer = signing(prefix=parse_location(prefix))
    signatures = await signer.sign(parse_location(f"{prefix}{directory}"), PATHS, WINDOW)

    assert signatures.origin.endswith(origin)


async def test_no_paths_have_no_signatures():
    assert len(await signing().sign(TABLE, Paths(b""), WINDOW)) == 0


async def test_many_paths_are_signed_as_each_by_itself():
    names = [encode_path(f"date=2021-04-28/part {number}+é") for number in range(3000)]
    signer = signing()
    together = await signer.sign(TABLE, Paths.of(names), WINDOW)

    assert together.signatures.count(b"\n") == 2999
    for number in (0, 1500, 2999):
        alone = await signer.sign(TABLE, Paths.of([names[number]]), WINDOW)
        assert together.signatures.split(b"\n")[number] == alone.signatures
        assert together.query == alone.query


async def test_location_of_another_storage_is_refused():
    for text in (f"abfss://{HOST}/shared2/orders", "abfss://other@lakeaccount.dfs.core.windows.net/shared/t"):
        with pytest.raises(Unsupported):
            await signing().sign(parse_location(text), PATHS, WINDOW)


async def test_url_reads_one_blob_and_does_nothing_else():
    found = fields(await signing().sign(TABLE, PATHS, WINDOW))

    assert (found["sp"], found["sr"], found["spr"]) == ("r", "b", "https")


async def test_plain_http_is_for_this_machine_only():
    local = replace(ACCOUNT, endpoint="http://127.0.0.1:10000/lakeaccount")

    assert fields(await signing(account=local).sign(TABLE, PATHS, WINDOW))["spr"] == "https,http"


async def test_signing_costs_a_hash():
    assert signing().cost is SigningCost.HASH


# AT-46
@pytest.mark.parametrize(("skew", "start"), [("5m", "11:55:00"), ("0s", "12:00:00"), ("1h", "11:00:00")])
async def test_url_and_key_are_valid_from_the_skew_before_the_window(skew, start):
    _, signer = replica(clockSkew=skew)
    found = fields(await signer.sign(TABLE, PATHS, WINDOW))

    assert found["st"] == found["skt"] == f"2026-01-02T{start}Z"


# AT-46
async def test_url_is_not_valid_before_its_key():
    key = delegation_key(starts_at=NOON - MINUTE)
    found = fields(await signing(key).sign(TABLE, PATHS, WINDOW))

    assert found["st"] == found["skt"] == "2026-01-02T11:59:00Z"


async def test_url_expires_with_its_window():
    signatures = await signing().sign(TABLE, PATHS, WINDOW)

    assert signatures.expires_at == WINDOW.expires_at == moment(fields(signatures)["se"])


# AT-37
@pytest.mark.parametrize("left", [timedelta(seconds=1), MINUTE, HOUR - timedelta(seconds=1)])
async def test_url_never_outlives_the_key_that_signed_it(left):
    signatures = await signing(delegation_key(life=left)).sign(TABLE, PATHS, WINDOW)
    found = fields(signatures)

    assert signatures.expires_at == NOON + left
    assert moment(found["se"]) == moment(found["ske"]) == NOON + left


# AT-36
async def test_reported_expiration_is_the_one_of_the_key_that_azure_gave_not_the_one_asked_for():
    given = key_answer("2026-01-02T11:55:00Z", "2026-01-02T12:20:00Z")
    _, signer = replica(answer=lambda _: given)
    signatures = await signer.sign(TABLE, PATHS, WINDOW)

    assert signatures.expires_at == NOON + timedelta(minutes=20)
    assert fields(signatures)["se"] == "2026-01-02T12:20:00Z"


# AT-36
@pytest.mark.parametrize("fraction", ["12:20:00.9999999Z", "12:20:00.5Z"])
async def test_fraction_of_a_second_is_not_promised(fraction):
    given = key_answer("2026-01-02T11:55:00Z", f"2026-01-02T{fraction}")
    _, signer = replica(answer=lambda _: given)
    signatures = await signer.sign(TABLE, PATHS, WINDOW)

    assert signatures.expires_at == NOON + timedelta(minutes=20)
    assert fields(signatures)["se"] == "2026-01-02T12:20:00Z"


# AT-37
@pytest.mark.parametrize("life", [timedelta(days=1), timedelta(days=7), timedelta(days=30)])
async def test_long_life_ends_with_the_longest_key_that_azure_gives(life):
    _, signer = replica()
    window = window_at(NOON, life, URL_PARTS, b"lake")
    signatures = await signer.sign(TABLE, PATHS, window)
    found = fields(signatures)

    assert moment(found["ske"]) - moment(found["skt"]) < timedelta(days=7)
    assert signatures.expires_at == min(window.expires_at, moment(found["ske"])) == moment(found["se"])


async def test_key_that_ended_before_the_window_signs_nothing():
    with pytest.raises(Unavailable):
        await signing(delegation_key(starts_at=NOON - 2 * HOUR, life=HOUR)).sign(TABLE, PATHS, WINDOW)


async def test_window_has_one_key_whatever_the_number_of_files_and_tables():
    requests, signer = replica()
    for number in range(20):
        table = parse_location(f"{PREFIX.text}/t{number}")
        await signer.sign(table, Paths.of([f"part-{part}" for part in range(100)]), WINDOW)

    assert len(requests) == 1


async def test_key_outlasts_its_window_by_a_moment_only():
    found = fields(await replica()[1].sign(TABLE, PATHS, WINDOW))

    assert found["ske"] == "2026-01-02T13:01:00Z"


async def test_urls_of_a_window_are_the_same_bytes_whenever_they_are_asked_for():
    sessions, clock = FakeSessions(), FakeClock()
    _, signer = replica(sessions, clock=clock)
    first = await signer.sign(TABLE, PATHS, WINDOW)
    clock.now += timedelta(minutes=14)

    assert await signer.sign(TABLE, PATHS, WINDOW) == first


async def test_urls_of_a_window_are_the_same_bytes_in_every_replica():
    sessions = FakeSessions()
    requests, first = replica(sessions)
    others, second = replica(sessions, clock=FakeClock(NOON + timedelta(minutes=3)))

    assert await first.sign(TABLE, PATHS, WINDOW) == await second.sign(TABLE, PATHS, WINDOW)
    assert (len(requests), len(others)) == (1, 0)


async def test_replicas_that_share_nothing_ask_for_the_same_key():
    first, second = replica(), replica(clock=FakeClock(NOON + timedelta(minutes=3)))
    for _, signer in (first, second):
        await signer.sign(TABLE, PATHS, WINDOW)

    assert first[0][0].body == second[0][0].body


async def test_account_key_signs_for_the_whole_window_and_is_told_nowhere():
    signatures = await signing(account_key()).sign(TABLE, PATHS, WINDOW)
    found = fields(signatures)

    assert (found["st"], found["se"]) == ("2026-01-02T11:55:00Z", "2026-01-02T13:00:00Z")
    assert signatures.expires_at == WINDOW.expires_at
    assert not [name for name in found if name.startswith("sk")]


async def test_signatures_show_nothing_that_opens():
    shown = repr(await signing().sign(TABLE, PATHS, WINDOW))

    assert "sig" not in shown.replace("Signatures", "")
    assert "skoid" not in shown
