from __future__ import annotations

import json

import pytest

from gateway.errors import Unavailable
from tests.cases import each_case
from tests.unit.vendors.r2.cloudflare import API_TOKEN, FakeCloudflare, failure, success
from vendors.http import Reply
from vendors.options import SecretOptions
from vendors.r2.api import CloudflareApi, error_codes

API = "https://api.example/client/v4"


@pytest.fixture
def cloudflare():
    return FakeCloudflare()


def api(cloudflare: FakeCloudflare, **token: str) -> CloudflareApi:
    given = SecretOptions.model_validate(token or {"value": API_TOKEN})
    return CloudflareApi(endpoint=API, token=given, call=cloudflare.call)


async def test_call_carries_the_token_and_its_body(cloudflare):
    reply = await api(cloudflare).send("POST", "/accounts/a/r2", {"bucket": "lake", "ttlSeconds": 900})

    (request,) = cloudflare.sent
    assert (request.method, request.url) == ("POST", f"{API}/accounts/a/r2")
    assert request.headers == {
        "Authorization": f"Bearer {API_TOKEN}",
        "Content-Type": "application/json",
    }
    assert json.loads(request.body) == {"bucket": "lake", "ttlSeconds": 900}
    assert reply is cloudflare.reply


async def test_call_without_a_body_sends_none(cloudflare):
    await api(cloudflare).send("DELETE", "/user/tokens/1")

    (request,) = cloudflare.sent
    assert request.body == b""
    assert set(request.headers) == {"Authorization"}


async def test_token_is_read_for_each_call(cloudflare, tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n", encoding="utf-8")
    calls = api(cloudflare, file=str(file))

    await calls.send("GET", "/a")
    file.write_text("two\n", encoding="utf-8")
    await calls.send("GET", "/a")

    assert [one.headers["Authorization"] for one in cloudflare.sent] == ["Bearer one", "Bearer two"]


async def test_nothing_is_sent_without_a_token(cloudflare, tmp_path):
    with pytest.raises(Unavailable):
        await api(cloudflare, file=str(tmp_path / "gone")).send("GET", "/a")
    assert cloudflare.sent == []


@each_case(
    ("reply", "codes"),
    [
        (success(), []),
        (failure(403, 10000, 9109), [10000, 9109]),
        (Reply(status=500, body=b"<html>"), []),
        (Reply(status=500, body=b'{"errors": null}'), []),
        (Reply(status=500, body=b'{"errors": ["words", {"code": "10000"}, {"code": 7}, {}]}'), [7]),
    ],
)
def test_errors_are_known_by_their_numbers_only(reply, codes):
    assert error_codes(reply) == codes
