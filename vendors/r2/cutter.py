"""Cuts off credentials of R2 that are already out, by deleting the token that they come from."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

from gateway.domain.location import Location
from gateway.domain.probe import Action, Verdict
from gateway.errors import GatewayError
from gateway.ports import Cut, Probe
from vendors.r2.api import CloudflareApi, error_codes
from vendors.r2.config import R2Options

_DONE: Final = frozenset({200, 204})
_NOT_FOUND: Final = 404

# Tells whether the store refuses to believe the parent's keys.
IsDead = Callable[[], Awaitable[bool]]

# What a store answers to keys that it does not know.
_UNKNOWN: Final = ("401", "403")

log = logging.getLogger(__name__)


async def is_refused(probe: Probe, at: Location) -> bool:
    """Tell whether a store does not believe the storage's own identity; its silence does not tell."""
    attempt = await probe.attempt(None, Action.LIST, at, "")
    return attempt.verdict is Verdict.FAILED and attempt.detail.startswith(_UNKNOWN)


class R2Cutter:
    """There is no way to end one credential: with its parent, all end, those of other recipients too."""

    def __init__(
        self, *, options: R2Options, api: CloudflareApi | None, is_dead: IsDead | None = None
    ) -> None:
        self._options = options
        # None where the settings do not allow it.
        self._api = api
        self._is_dead = is_dead
        key = options.identity.access_key_id
        self.everybody = f"r2 token {key}"
        self.consequence = ""
        if api is not None:
            self.consequence = (
                f"deletes its parent token {key}, and with it everybody's credentials: what is issued opens "
                "nothing until the storage is given another one"
            )

    async def cut_off(self, recipient: str, issued_before: datetime) -> Cut:
        if self._api is None:
            return Cut(done=False, words=self._advice(recipient))
        try:
            refused = await self._delete(self._api)
        except GatewayError as exc:
            refused = exc.message
        if refused:
            words = f"the parent token was not deleted ({refused}). {self._advice(recipient)}"
            return Cut(done=False, words=words)
        key = self._options.identity.access_key_id
        words = (
            f"the parent token {key} is deleted: every credential that was made from it has ended, "
            "those of other recipients too. Create a new R2 API token and set identity.accessKeyId and "
            "identity.secretAccessKey: until then what this storage issues opens nothing"
        )
        return Cut(done=True, words=words)

    async def _delete(self, api: CloudflareApi) -> str:
        """Delete the parent; return why that was refused, or nothing."""
        reply = await api.send("DELETE", self._path())
        if reply.status in _DONE and reply.fields().get("success") is not False:
            return ""
        # Cloudflare also finds none where the token belongs to a user and the settings say account.
        if reply.status == _NOT_FOUND and self._is_dead is not None and await self._is_dead():
            return ""
        codes = error_codes(reply)
        log.warning("Cloudflare's API did not delete a token: %d, codes %s", reply.status, codes)
        return f"Cloudflare's API answered {reply.status}"

    def _path(self) -> str:
        revocation = self._options.revocation
        is_users = revocation is not None and revocation.owner == "user"
        owner = "user" if is_users else f"accounts/{self._options.account_id}"
        return f"/{owner}/tokens/{self._options.identity.access_key_id}"

    def _advice(self, recipient: str) -> str:
        url = self._options.api_endpoint + self._path()
        return (
            f"what {recipient} holds ends by itself when its life is over. To end it now, and with it every "
            "credential of this storage, those of other recipients too, delete the parent token: "
            f'`curl -X DELETE {url} -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"` with a '
            "token that has the permission API Tokens Write; then create a new R2 API token for this storage"
        )
