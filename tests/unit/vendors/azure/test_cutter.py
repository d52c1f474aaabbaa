from __future__ import annotations

from dataclasses import replace

from gateway.errors import Unavailable
from tests.cases import each_case
from tests.unit.vendors.azure.doubles import ACCOUNT, NOON, FakeHttp, FakeTokens, options
from vendors.azure.cutter import AzureCutter
from vendors.http import Reply

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
REVOCATION = {"subscription": SUBSCRIPTION, "resourceGroup": "lake(rg)"}


async def cut(answer, revocation=REVOCATION):
    forgotten: list[bool] = []
    http = FakeHttp(lambda _: answer)
    given = options(revocation=revocation) if revocation else options()
    cutter = AzureCutter(ACCOUNT, given.revocation, FakeTokens(), http, lambda: forgotten.append(True))
    return await cutter.cut_off("acme", NOON), http.requests, forgotten


async def test_without_settings_the_command_is_told_and_nothing_is_done():
    done, requests, forgotten = await cut(Reply(status=200), None)

    assert not done.done
    assert "az storage account revoke-delegation-keys --name lakeaccount --resource-group" in done.words
    assert "other recipients too" in done.words
    assert "revokedAt" in done.words
    assert (requests, forgotten) == ([], [])


async def test_keys_of_the_account_are_revoked_through_the_management_api():
    done, (request,), forgotten = await cut(Reply(status=200))

    assert done.done
    assert "other recipients too" in done.words
    assert request.method == "POST"
    assert request.url == (
        f"https://management.azure.com/subscriptions/{SUBSCRIPTION}/resourceGroups/lake%28rg%29/providers"
        "/Microsoft.Storage/storageAccounts/lakeaccount/revokeUserDelegationKeys?api-version=2023-01-01"
    )
    assert request.headers["authorization"] == "Bearer own-token"
    assert forgotten == [True]


@each_case(
    "answer",
    [Reply(status=403), Reply(status=404), Reply(status=202), Unavailable("Azure does not answer")],
)
async def test_what_was_not_revoked_is_not_called_done(answer):
    done, _, forgotten = await cut(answer)

    assert not done.done
    assert f"--resource-group 'lake(rg)' --subscription {SUBSCRIPTION}" in done.words
    assert forgotten == []


async def test_missing_permission_is_named_in_the_log(caplog):
    await cut(Reply(status=403))

    assert "revokeUserDelegationKeys/action" in caplog.text


async def test_management_api_of_another_cloud_is_used():
    elsewhere = {**REVOCATION, "endpoint": "https://management.usgovcloudapi.net"}
    _, (request,), _ = await cut(Reply(status=200), elsewhere)

    assert request.url.startswith("https://management.usgovcloudapi.net/subscriptions/")


def test_account_is_what_storages_have_in_common_and_its_end_is_told_before():
    def cutter(account, given) -> AzureCutter:
        return AzureCutter(
            account, given.revocation, FakeTokens(), FakeHttp(lambda _: Reply(status=200)), lambda: None
        )

    allowed = cutter(ACCOUNT, options(revocation=REVOCATION))
    asking = cutter(replace(ACCOUNT, container="other"), options())

    assert allowed.everybody == asking.everybody
    assert "delegation keys of the account lakeaccount" in allowed.consequence
    assert asking.consequence == ""
