"""Cuts off credentials of R2 that are already out, by deleting the token that they come from."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from gateway.errors import GatewayError
from gateway.ports import Cut
from vendors.r2.api import CloudflareApi, error_codes
from vendors.r2.config import R2Options

_DONE: Final = frozenset({200, 204})

log = logging.getLogger(__name__)


class R2Cutter:
    """There is no way to end one credential: with its parent, all end, those of other recipients too."""

    def __init__(self, *, options: R2Options, api: CloudflareApi | None) -> None:
        self._options = options
        # None where the settings do not allow it.
        self._api = api

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
            f"deleted the parent token {key}: every credential that was made from it has ended, "
            "those of other recipients too. Create a new R2 API token and set identity.accessKeyId and "
            "identity.secretAccessKey: until then what this storage issues opens nothing"
        )
        return Cut(done=True, words=words)

    async def _delete(self, api: CloudflareApi) -> str:
        """Delete the parent; return why that was refused, or nothing."""
        reply = await api.send("DELETE", self._path())
        if reply.status in _DONE and reply.fields().get("success") is not False:
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
