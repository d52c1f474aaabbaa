from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from gateway.errors import Unavailable
from tests.unit.vendors.gcp.google import SHARER
from tests.unit.vendors.gcp.iam import Answer, FakeIam, blob_signature, refusal
from vendors.gcp.config import Account
from vendors.http import Reply, Request


@pytest.fixture
def iam():
    return FakeIam()


def messages(count: int) -> list[bytes]:
    return [f"message-{number}".encode() for number in range(count)]


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (2, [2]), (100, [100]), (101, [1, 100]), (250, [50, 100, 100])]
)
async def test_messages_are_signed_in_batches_of_a_hundred_and_in_order(iam, count, sizes):
    signed = await iam.client().sign(messages(count))

    assert signed == [blob_signature(message) for message in messages(count)]
    assert sorted(iam.sizes) == sizes
    assert sorted(iam.messages) == sorted(messages(count))


async def test_single_call_is_that_of_googles_documentation(iam):
    await iam.client(Account(email=SHARER, delegates=("a@p.iam.gserviceaccount.com",))).sign([b"text"])

    (request,) = iam.requests
    assert (
        request.url
        == f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{SHARER}:signBlob"
    )
    assert request.headers == {"Authorization": "Bearer the-token", "Content-Type": "application/json"}
    assert json.loads(request.body) == {
        "payload": base64.b64encode(b"text").decode(),
        "delegates": ["projects/-/serviceAccounts/a@p.iam.gserviceaccount.com"],
    }


async def test_batch_goes_to_the_apis_own_path_with_the_token_once(iam):
    await iam.client().sign(messages(2))

    (request,) = iam.requests
    assert request.url == "https://iamcredentials.googleapis.com/batch"
    assert request.headers["Authorization"] == "Bearer the-token"
    assert b"the-token" not in request.body
    assert "the-token" not in repr(request)


async def test_only_so_many_batches_are_under_way_at_once(iam):
    client = iam.client()

    await asyncio.gather(*(client.sign(messages(1500)) for _ in range(3)))

    assert iam.most_underway == 8


async def test_without_batches_each_message_is_a_call_and_none_is_tried_again_at_once(iam, caplog):
    iam.takes_batches = False
    client = iam.client()

    assert await client.sign(messages(150)) == [blob_signature(message) for message in messages(150)]
    await client.sign(messages(3))

    assert iam.sizes.count(1) == 153
    assert len([size for size in iam.sizes if size > 1]) == 2
    assert 8 < iam.most_underway <= 33
    assert "no batches" in caplog.text


@pytest.mark.parametrize(
    ("later", "sizes"),
    [(timedelta(minutes=5, seconds=-1), [1, 1]), (timedelta(minutes=5), [2]), (timedelta(hours=-1), [2])],
)
async def test_batch_is_tried_again_after_some_minutes_or_when_the_clock_was_set_back(iam, later, sizes):
    iam.replies = [Reply(status=400)]
    client = iam.client()
    await client.sign(messages(2))
    iam.sizes.clear()
    iam.now += later

    assert await client.sign(messages(2)) == [blob_signature(message) for message in messages(2)]
    assert iam.sizes == sizes


@pytest.mark.parametrize("status", [400, 405, 501])
async def test_batch_that_is_refused_as_such_is_taken_apart(iam, status):
    iam.replies = [Reply(status=status)]

    assert await iam.client().sign(messages(2)) == [blob_signature(message) for message in messages(2)]


@pytest.mark.parametrize("failing", [{0}, {99}, set(range(0, 100, 2)), set(range(100))])
@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_calls_that_failed_in_passing_are_made_once_more_and_nothing_is_shifted(iam, failing, status):
    iam.backwards = False
    iam.spoilt = {number: refusal(status, "UNAVAILABLE") for number in failing}

    signed = await iam.client().sign(messages(100))

    assert signed == [blob_signature(message) for message in messages(100)]
    assert iam.sizes == [100, len(failing)]


async def test_request_that_failed_in_passing_is_made_once_more(iam):
    iam.replies = [Reply(status=502)]

    assert await iam.client().sign(messages(5)) == [blob_signature(message) for message in messages(5)]
    assert iam.sizes == [5, 5]


async def test_half_a_batch_that_keeps_failing_is_no_signature_at_all(iam):
    iam.backwards = False
    iam.spoilt = {number: refusal(500, "INTERNAL") for number in range(200) if number % 2}

    with pytest.raises(Unavailable):
        await iam.client().sign(messages(100))
    assert iam.sizes == [100, 50]


def throttled(seconds: int) -> Answer:
    return refusal(429, "RESOURCE_EXHAUSTED", **{"retry-after": str(seconds)})


@pytest.mark.parametrize("number", [0, 57, 99])
async def test_call_that_is_throttled_is_made_again_after_as_long_as_google_asks(iam, number):
    iam.backwards = False
    iam.spoilt = {number: throttled(7)}

    assert await iam.client().sign(messages(100)) == [blob_signature(message) for message in messages(100)]
    assert iam.sizes == [100, 1]
    assert iam.slept == [7]


async def test_quota_that_runs_out_amid_a_page_costs_time_and_no_signature_twice(iam, caplog):
    iam.backwards = False
    # Of each 400 calls, the quota has 300 left.
    iam.spoilt = {number: throttled(1) for number in range(2000) if number % 400 >= 300}

    assert await iam.client().sign(messages(1000)) == [blob_signature(message) for message in messages(1000)]
    assert set(iam.slept) == {1}
    refused = [number for number in iam.spoilt if number < len(iam.messages)]
    assert len(iam.messages) == 1000 + len(refused)
    # Once for each time that Google is left alone.
    assert caplog.text.count("429 RESOURCE_EXHAUSTED") == len(iam.slept)


@pytest.mark.parametrize(("seconds", "slept"), [(1, 20), (6, 3), (7, 2), (20, 1), (21, 0), (60, 0)])
async def test_throttling_that_does_not_end_is_passed_on_with_the_time_to_wait(iam, seconds, slept):
    iam.backwards = False
    iam.spoilt = {number: throttled(seconds) for number in range(50, 10000)}

    with pytest.raises(Unavailable) as caught:
        await iam.client().sign(messages(100))
    assert caught.value.retry_after == timedelta(seconds=seconds)
    assert iam.slept == [seconds] * slept
    assert iam.sizes == [100, *[50] * slept]


async def test_throttling_that_is_over_before_the_others_are_answered_is_not_followed_for_ever(iam):
    iam.backwards = False
    iam.spoilt = {number: throttled(1) for number in range(50, 10000)}

    async def slow(request: Request) -> Reply:
        reply: Reply = await iam.call(request)
        iam.now += timedelta(seconds=5)
        return reply

    with pytest.raises(Unavailable) as caught:
        await iam.client(call=slow).sign(messages(300))
    assert caught.value.retry_after == timedelta(seconds=1)
    assert len(iam.slept) == 20


async def test_one_that_stays_out_of_order_is_waited_for_as_one_that_throttles(iam):
    iam.replies = [Reply(status=503, headers={"retry-after": "7"})] * 2

    assert len(await iam.client().sign(messages(5))) == 5
    assert iam.sizes == [5, 5, 5]
    assert iam.slept == [7]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=429, headers={"retry-after": "30"}),
        Reply(
            status=403,
            headers={"retry-after": "30"},
            body=json.dumps(refusal(403, "RESOURCE_EXHAUSTED")[1]).encode(),
        ),
    ],
)
async def test_throttling_of_a_request_is_passed_on_and_google_is_left_alone_for_that_long(iam, reply):
    iam.replies = [reply]
    client = iam.client()
    with pytest.raises(Unavailable) as caught:
        await client.sign(messages(5))
    assert caught.value.retry_after == timedelta(seconds=30)

    iam.now += timedelta(seconds=3)
    with pytest.raises(Unavailable) as caught:
        await client.sign(messages(5))
    assert caught.value.retry_after == timedelta(seconds=27)
    assert len(iam.requests) == 1

    # What is left is no more than a page waits for.
    iam.now += timedelta(seconds=10)
    assert len(await client.sign(messages(5))) == 5
    assert iam.slept == [17]


async def test_clock_that_is_set_back_does_not_lengthen_the_pause(iam):
    iam.replies = [Reply(status=429, headers={"retry-after": "30"})]
    client = iam.client()
    with pytest.raises(Unavailable):
        await client.sign(messages(5))
    iam.now -= timedelta(hours=1)

    assert len(await client.sign(messages(5))) == 5
    assert iam.slept == []


async def test_after_a_refusal_what_waits_is_not_asked_for(iam):
    iam.replies = [Reply(status=429, headers={"retry-after": "30"})] * 8

    with pytest.raises(Unavailable):
        await iam.client().sign(messages(5000))
    assert len(iam.requests) == 8


async def test_without_batches_a_throttled_call_keeps_all_that_wait_from_asking(iam):
    iam.takes_batches = False
    iam.spoilt = {40: throttled(30)}
    client = iam.client()

    waiting = [asyncio.create_task(client.sign(messages(100))) for _ in range(10)]
    failed = await asyncio.gather(*waiting, return_exceptions=True)

    assert all(isinstance(each, Unavailable) and each.retry_after for each in failed)
    # Those that were under way when it was answered, and no others.
    assert len(iam.bodies) <= 41 + 32


async def test_without_batches_too_a_throttled_call_is_made_again(iam):
    iam.takes_batches = False
    iam.spoilt = {40: throttled(7)}

    assert await iam.client().sign(messages(100)) == [blob_signature(message) for message in messages(100)]
    assert iam.slept == [7]
    assert len(iam.bodies) == 101


@pytest.mark.parametrize("spoilt", [refusal(403, "PERMISSION_DENIED"), refusal(500), (200, {}, {})])
@pytest.mark.parametrize("takes_batches", [True, False])
async def test_after_a_failure_what_was_signed_is_not_asked_for_again(iam, spoilt, takes_batches):
    iam.backwards = False
    iam.takes_batches = takes_batches
    iam.spoilt = dict.fromkeys((150, 151, 152, 1001, 1002), spoilt)
    client = iam.client()
    while True:
        with suppress(Unavailable):
            signed = await client.sign(messages(1000))
            break

    assert signed == [blob_signature(message) for message in messages(1000)]
    answered = Counter(message for number, message in enumerate(iam.messages) if number not in iam.spoilt)
    assert answered == Counter(messages(1000))
    # What was returned is not kept: the next request has it signed again.
    iam.messages.clear()
    await client.sign(messages(1000))
    assert sorted(iam.messages) == sorted(messages(1000))


@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize("count", [1, 3])
async def test_refusal_is_unavailable_and_logged_by_googles_word_alone(iam, status, count, caplog):
    iam.spoilt = dict.fromkeys(range(9), refusal(status, "PERMISSION_DENIED"))

    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable) as caught:
        await iam.client().sign(messages(count))
    assert caught.value.retry_after is None
    assert f"signBlob as {SHARER} was refused: {status} PERMISSION_DENIED" in caplog.text
    assert "secret-in-the-words" not in caplog.text + caught.value.message
    assert "the-token" not in caplog.text + caught.value.message


@pytest.mark.parametrize("word", ["secret-in-the-words", 7, None, "A" * 50])
async def test_word_that_is_not_googles_is_not_logged(iam, word, caplog):
    iam.spoilt = {0: (403, {"error": {"status": word}}, {})}

    with pytest.raises(Unavailable):
        await iam.client().sign(messages(1))
    assert "403 no code" in caplog.text


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"signedBlob": None},
        {"signedBlob": ""},
        {"signedBlob": 7},
        {"signedBlob": "!!!!"},
        {"signedBlob": base64.b64encode(b"short").decode()},
        {"signedBlob": base64.b64encode(b"x" * 256).decode()[:-1]},
    ],
)
async def test_answer_without_a_signature_is_refused(iam, fields, caplog):
    iam.spoilt = {1: (200, fields, {})}

    with pytest.raises(Unavailable):
        await iam.client().sign(messages(3))
    assert "without a signature" in caplog.text


async def test_batch_whose_answer_is_not_whole_is_refused(iam, caplog):
    iam.replies = [Reply(status=200, body=b"{}", headers={"content-type": "application/json"})]

    with pytest.raises(Unavailable):
        await iam.client().sign(messages(3))
    assert "no URL was signed" in caplog.text


async def test_silence_is_unavailable_and_ends_what_else_is_under_way(iam):
    finished = []

    async def call(request: Request) -> Reply:
        if request.url.endswith("/batch"):
            return Reply(status=404)
        if b"message-0" in base64.b64decode(json.loads(request.body)["payload"]):
            raise Unavailable("the storage's provider does not answer; try again later")
        await asyncio.sleep(10)
        finished.append(request)
        return Reply(status=500)

    with pytest.raises(Unavailable, match="does not answer"):
        await iam.client(call=call).sign(messages(20))
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert finished == []


async def test_caller_that_gives_up_ends_what_is_under_way(iam):
    async def call(request: Request) -> Reply:
        await asyncio.sleep(10)
        return Reply(status=500)

    client = iam.client(call=call)
    signing = asyncio.create_task(client.sign(messages(500)))
    await asyncio.sleep(0)
    signing.cancel()
    await asyncio.gather(signing, return_exceptions=True)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_caller_that_gives_up_leaves_its_turns_and_what_was_signed_to_others(iam):
    client = iam.client()
    for answered in range(8, 80, 8):
        signing = asyncio.create_task(client.sign(messages(10000)))
        # Then others are under way, and others wait for their turn.
        while len(iam.sizes) < answered:
            await asyncio.sleep(0)
        signing.cancel()
        await asyncio.gather(signing, return_exceptions=True)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    iam.most_underway = iam.underway = 0

    assert await client.sign(messages(10000)) == [blob_signature(message) for message in messages(10000)]
    assert iam.most_underway == 8
    assert len(iam.messages) == len(set(iam.messages)) == 10000
