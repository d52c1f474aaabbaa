from __future__ import annotations

import pytest

from gateway.domain.credential import Credential
from gateway.domain.location import Location, parse_location
from gateway.domain.probe import Action, Attempt, Verdict
from tests.cases import each_case
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
from vendors.r2.cutter import R2Cutter, is_refused


@pytest.fixture
def cloudflare():
    return FakeCloudflare()


def cutter(cloudflare: FakeCloudflare, owner: str = "account", *, is_dead: bool = False) -> R2Cutter:
    async def ask() -> bool:
        return is_dead

    revocation = {"deleteParentToken": True, "owner": owner, "apiToken": {"value": API_TOKEN}}
    chosen = options(revocation=revocation)
    assert chosen.revocation is not None
    api = CloudflareApi(endpoint=chosen.api_endpoint, token=chosen.revocation.api_token, call=cloudflare.call)
    return R2Cutter(options=chosen, api=api, is_dead=ask)


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


async def test_parent_that_is_gone_already_is_done(cloudflare):
    cloudflare.reply = failure(404, 1001)

    cut = await cutter(cloudflare, is_dead=True).cut_off("acme", NOON)

    assert cut.done
    assert f"the parent token {PARENT} is deleted" in cut.words


async def test_refused_keys_alone_do_not_make_a_parent_gone(cloudflare):
    cloudflare.reply = failure(403, 9109)

    assert not (await cutter(cloudflare, is_dead=True).cut_off("acme", NOON)).done


class FakeProbe:
    def __init__(self, verdict: Verdict, detail: str) -> None:
        self._attempt = Attempt(verdict=verdict, detail=detail)

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        assert (credential, action, path) == (None, Action.LIST, "")
        return self._attempt


@each_case(
    ("verdict", "detail", "refused"),
    [
        (Verdict.FAILED, "401 Unauthorized", True),
        (Verdict.FAILED, "403 InvalidAccessKeyId", True),
        # It knows who is asking.
        (Verdict.DENIED, "403 AccessDenied", False),
        (Verdict.ALLOWED, "", False),
        # It may know.
        (Verdict.FAILED, "503 SlowDown", False),
        (Verdict.FAILED, "no answer", False),
    ],
)
async def test_keys_are_dead_only_by_the_stores_own_word(verdict, detail, refused):
    location = parse_location("s3://lake/shared")
    assert await is_refused(FakeProbe(verdict, detail), location) is refused


def test_parent_is_what_storages_have_in_common_and_its_end_is_told_before(cloudflare):
    allowed, asking = cutter(cloudflare), R2Cutter(options=options(), api=None)

    assert allowed.everybody == asking.everybody
    assert PARENT in allowed.everybody
    assert f"deletes its parent token {PARENT}" in allowed.consequence
    assert asking.consequence == ""
