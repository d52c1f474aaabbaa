"""Cuts off every SAS that is out, by revoking the account's delegation keys."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import quote

from gateway.errors import GatewayError
from gateway.ports import Cut
from vendors.azure.account import Account
from vendors.azure.config import RevocationOptions
from vendors.azure.delegation_key import TokenSource
from vendors.azure.errors import error_code
from vendors.http import Call, Request

_API_VERSION: Final = "2023-01-01"
_ACTION: Final = "Microsoft.Storage/storageAccounts/revokeUserDelegationKeys/action"
_EVERYBODY: Final = "this cuts off every user delegation SAS of the account, those of other recipients too"
# A replica that took a new key before the revocation would go on with one that nobody believes.
_AFTERWARDS: Final = "set the storage's revokedAt, so that every replica drops what it kept"

log = logging.getLogger(__name__)


class AzureCutter:
    """Without ``revocation`` in the options it says what to do, and does nothing."""

    def __init__(
        self,
        account: Account,
        revocation: RevocationOptions | None,
        tokens: TokenSource,
        http: Call,
        forget_key: Callable[[], None],
    ) -> None:
        self._account = account
        self._revocation = revocation
        self._tokens = tokens
        self._call = http
        self._forget_key = forget_key
        self.everybody = f"azure account {account.endpoint}"
        self.consequence = ""
        if revocation is not None:
            self.consequence = f"revokes the delegation keys of the account {account.name}: {_EVERYBODY}"

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        if self._revocation is None:
            return Cut(done=False, words=f"run `{self._command()}`, then {_AFTERWARDS}; {_EVERYBODY}")
        try:
            fault = await self._revoke(self._revocation)
        except GatewayError as exc:
            fault = exc.message
        if fault:
            words = f"Azure did not revoke the keys ({fault}): run `{self._command()}`, then {_AFTERWARDS}"
            return Cut(done=False, words=words)
        # It signs nothing that Azure would still believe.
        self._forget_key()
        return Cut(
            done=True,
            words=f"the delegation keys of the account {self._account.name} are revoked: {_EVERYBODY}; "
            f"Azure may take some minutes to follow; then {_AFTERWARDS}",
        )

    async def _revoke(self, revocation: RevocationOptions) -> str:
        token = await self._tokens.get()
        group = quote(revocation.resource_group, safe="")
        reply = await self._call(
            Request(
                method="POST",
                url=f"{revocation.endpoint}/subscriptions/{revocation.subscription}/resourceGroups/{group}"
                f"/providers/Microsoft.Storage/storageAccounts/{self._account.name}/revokeUserDelegationKeys"
                f"?api-version={_API_VERSION}",
                headers={"authorization": f"Bearer {token.value}"},
            )
        )
        if reply.status == 200:  # noqa: PLR2004 - the only status of success
            return ""
        log.error(
            "account %s: Azure refused to revoke its delegation keys (%d); the identity needs the action %s",
            self._account.name,
            reply.status,
            _ACTION,
        )
        return f"{reply.status} {error_code(reply)}".strip()

    def _command(self) -> str:
        revocation = self._revocation
        group = shlex.quote(revocation.resource_group) if revocation else "RESOURCE_GROUP"
        command = (
            f"az storage account revoke-delegation-keys --name {self._account.name} --resource-group {group}"
        )
        return f"{command} --subscription {revocation.subscription}" if revocation else command
