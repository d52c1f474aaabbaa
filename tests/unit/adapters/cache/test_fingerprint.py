from __future__ import annotations

from datetime import timedelta
from typing import Any

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
