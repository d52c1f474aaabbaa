"""Calls of Cloudflare's API."""

from __future__ import annotations

import json
from collections.abc import Mapping

from vendors.http import Call, Reply, Request
from vendors.options import SecretOptions
from vendors.r2.identity import read_secret


class CloudflareApi:
    """Sends one token, which is read each time it is needed."""

    def __init__(self, *, endpoint: str, token: SecretOptions, call: Call) -> None:
        self._endpoint = endpoint
        self._token = token
        self._call = call

    async def send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Reply:
        headers = {"Authorization": f"Bearer {await read_secret(self._token, 'apiToken')}"}
        if body is None:
            return await self._call(Request(method=method, url=self._endpoint + path, headers=headers))
        headers["Content-Type"] = "application/json"
        content = json.dumps(body).encode()
        return await self._call(
            Request(method=method, url=self._endpoint + path, headers=headers, body=content)
        )


def error_codes(reply: Reply) -> list[int]:
    """Return the numbers of the errors in an answer; its words may repeat what was sent."""
    errors = reply.fields().get("errors")
    found = (
        [item.get("code") for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    )
    return [code for code in found if isinstance(code, int)]
