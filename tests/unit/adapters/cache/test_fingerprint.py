from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.domain.location import parse_location
from tests.unit.adapters.cache.doubles import HOUR, NOON, planned


async def of(time, **changes) -> bytes:
    return await Fingerprint(planned(**changes), time.monotonic).settled()


async def test_every_setting_counts(time):
    settings: list[dict[str, Any]] = [
        {},
        {"name": "pond"},
        {"prefix": parse_location("s3://lake/a")},
        {"vendor": "s3"},
        {"options": {"region": "eu"}},
        {"options": {"region": "us"}},
        {"options": {"identity": {"secretKey": {"value": "one"}}}},
        {"options": {"identity": {"secretKey": {"value": "two"}}}},
        {"credential_life": 2 * HOUR},
        {"revoked_at": NOON},
        {"revoked_at": NOON + timedelta(seconds=1)},
    ]
    assert len({await of(time, **each) for each in settings}) == len(settings)


async def test_the_order_of_options_and_the_spelling_of_a_prefix_do_not_count(time):
    assert await of(time, options={"a": 1, "b": 2}) == await of(time, options={"b": 2, "a": 1})
    assert await of(time, prefix=parse_location("s3a://lake/")) == await of(time)


async def test_it_is_known_at_once_where_no_file_is_named_and_tells_no_secret(time):
    fingerprint = Fingerprint(planned(options={"secret": {"value": "hunter2"}}), time.monotonic)
    assert fingerprint.value is not None
    assert b"hunter2" not in fingerprint.value


async def test_a_secret_that_is_replaced_in_its_file_counts_within_a_minute(time, tmp_path):
    file = tmp_path / "secret"
    file.write_text("one")
    options = {"identity": {"secretKey": {"file": str(file)}}}
    fingerprint = Fingerprint(planned(options=options), time.monotonic)
    before = await fingerprint.settled()
    file.write_text("two")
    assert await fingerprint.settled() == before

    time.move(timedelta(minutes=1))
    after = await fingerprint.settled()
    assert after != before
    assert fingerprint.value == after == await of(time, options=options)


async def test_it_is_due_once_a_minute_where_files_are_named_and_never_where_not(time, tmp_path):
    named = Fingerprint(planned(options={"secret": {"file": str(tmp_path / "secret")}}), time.monotonic)
    unnamed = Fingerprint(planned(), time.monotonic)
    for _ in range(3):
        assert (named.is_due, unnamed.is_due) == (True, False)
        await named.settled()
        time.move(timedelta(seconds=59))
        assert named.is_due is False
        time.move(timedelta(seconds=1))


async def test_who_stops_looking_leaves_it_due(time, tmp_path):
    file = tmp_path / "secret"
    file.write_text("one")
    fingerprint = Fingerprint(planned(options={"secret": {"file": str(file)}}), time.monotonic)
    before = await fingerprint.settled()
    file.write_text("two")
    time.move(timedelta(minutes=1))
    looking = asyncio.create_task(fingerprint.settled())
    await asyncio.sleep(0)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert fingerprint.is_due
    assert await fingerprint.settled() != before


@pytest.mark.parametrize("name", ["credentials", "config"])
async def test_a_profile_without_a_file_comes_from_those_of_the_home(time, tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    options = {"identity": {"kind": "profile", "name": "lake"}}
    file = tmp_path / ".aws" / name
    file.parent.mkdir()
    seen = {await of(time, options=options)}
    for content in ("one", "two"):
        file.write_text(content)
        seen.add(await of(time, options=options))
    assert len(seen) == 3


async def test_the_home_does_not_count_where_a_profile_has_a_file_or_another_identity_is_named(
    time, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    named = {"kind": "profile", "name": "lake", "file": str(tmp_path / "own")}
    identities = [named, {"kind": "chain"}, {"kind": "keys", "accessKeyId": "a"}]
    before = [await of(time, options={"identity": identity}) for identity in identities]
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("one")
    assert [await of(time, options={"identity": identity}) for identity in identities] == before


async def test_no_home_is_no_error(time):
    # There is no such user.
    options = {"secret": {"file": "~nobody-of-this-name/secret"}}
    assert await of(time, options=options) == await of(time, options=options)


async def test_key_files_count_and_the_tokens_of_a_pod_do_not(time, tmp_path):
    file = tmp_path / "file"
    for name, counts in (("keyFile", True), ("tokenFile", False)):
        file.write_text("one")
        before = await of(time, options={"identity": {name: str(file)}})
        file.write_text("two")
        assert (await of(time, options={"identity": {name: str(file)}}) != before) is counts


async def test_a_file_that_cannot_be_read_is_no_error_and_counts(time, tmp_path):
    options = {"secret": {"file": str(tmp_path / "secret")}}
    without = await of(time, options=options)
    (tmp_path / "secret").write_text("")
    assert await of(time, options=options) != without


async def test_files_in_lists_are_found(time, tmp_path):
    file = tmp_path / "secret"
    options = {"secrets": [{"file": str(file)}]}
    without = await of(time, options=options)
    file.write_text("one")
    assert await of(time, options=options) != without
