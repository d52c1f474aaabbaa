from __future__ import annotations

import pytest

from tests.unit.vendors.r2.cloudflare import (
    ACCOUNT,
    API_TOKEN,
    NOON,
    PARENT,
    FakeCloudflare,
    failure,
    options,
    success,
)
from vendors.http import Reply
from vendors.r2.api import CloudflareApi
from vendors.r2.cutter import R2Cutter


@pytest.fixture
def cloudflare():
    return FakeCloudflare()


def cutter(cloudflare: FakeCloudflare, owner: str = "account") -> R2Cutter:
    revocation = {"deleteParentToken": True, "owner": owner, "apiToken": {"value": API_TOKEN}}
    chosen = options(revocation=revocation)
    assert chosen.revocation is not None
    api = CloudflareApi(endpoint=chosen.api_endpoint, token=chosen.revocation.api_token, call=cloudflare.call)
    return R2Cutter(options=chosen, api=api)


async def test_without_permission_it_says_what_to_do(cloudflare):
    cut = await R2Cutter(options=options(), api=None).cut_off("acme", NOON)

    assert not cut.done
    assert (
        f"curl -X DELETE https://api.cloudflare.com/client/v4/accounts/{ACCOUNT}/tokens/{PARENT} "
        '-H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"'
    ) in cut.words
    assert "other recipients too" in cut.words


@pytest.mark.parametrize(
    ("owner", "path"),
    [("account", f"/accounts/{ACCOUNT}/tokens/{PARENT}"), ("user", f"/user/tokens/{PARENT}")],
)
async def test_parent_is_deleted_where_the_settings_allow_it(cloudflare, owner, path):
    cloudflare.reply = success(id=PARENT)

    cut = await cutter(cloudflare, owner).cut_off("acme", NOON)

    (request,) = cloudflare.sent
    assert (request.method, request.url) == ("DELETE", f"https://api.cloudflare.com/client/v4{path}")
    assert request.headers == {"Authorization": f"Bearer {API_TOKEN}"}
    assert cut.done
    assert "other recipients too" in cut.words


@pytest.mark.parametrize(
    "reply", [failure(403, 9109), failure(404, 1001), Reply(status=200, body=b'{"success": false}'), None]
)
async def test_refusal_or_silence_is_not_done_and_says_what_to_do(cloudflare, reply, caplog):
    cloudflare.reply = reply

    cut = await cutter(cloudflare).cut_off("acme", NOON)

    assert not cut.done
    assert "the parent token was not deleted" in cut.words
    assert "curl -X DELETE" in cut.words
    assert API_TOKEN not in cut.words + caplog.text
