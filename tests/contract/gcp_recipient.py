"""A recipient of tokens for Google Cloud Storage, who speaks its JSON API."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from urllib.parse import quote

from gateway.domain.credential import Credential, GcpOauthToken
from gateway.domain.location import Location, parse_location
from gateway.ports import Storage
from tests.contract.issuing import Denied, Missing
from tests.doubles.gcp import GoogleCloud


class GcpHarness:
    def __init__(self, storage: Storage, cloud: GoogleCloud) -> None:
        self.storage = storage
        self._cloud = cloud

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.storage.prefix.text}/{directory}")

    def elsewhere(self, directory: str) -> Location:
        bucket = self._cloud.storage.make_bucket(f"{self.storage.prefix.authority}-other")
        return parse_location(f"gs://{bucket}/{directory}")

    async def put(self, at: Location, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._cloud.storage.put, at.authority, f"{at.path}/{path}", content)

    async def read(self, credential: Credential, at: Location, path: str) -> bytes:
        return await self._ask(credential, "GET", f"{_object(at, path)}?alt=media")

    async def listing(self, credential: Credential, at: Location, prefix: str) -> Sequence[str]:
        place = f"/storage/v1/b/{at.authority}/o?prefix={quote(prefix, safe='')}"
        answer = await self._ask(credential, "GET", place)
        return [entry["name"] for entry in json.loads(answer).get("items", ())]

    async def write(self, credential: Credential, at: Location, path: str, content: bytes) -> None:
        name = quote(f"{at.path}/{path}", safe="")
        place = f"/upload/storage/v1/b/{at.authority}/o?uploadType=media&name={name}"
        await self._ask(credential, "POST", place, content)

    async def delete(self, credential: Credential, at: Location, path: str) -> None:
        await self._ask(credential, "DELETE", _object(at, path))

    async def _ask(self, credential: Credential, method: str, place: str, body: bytes | None = None) -> bytes:
        assert isinstance(credential.secret, GcpOauthToken)
        headers = {"Authorization": f"Bearer {credential.secret.oauth_token}"}
        if body is not None:
            headers["Content-Type"] = "application/octet-stream"
        request = urllib.request.Request(
            f"{self._cloud.origin}{place}", data=body, headers=headers, method=method
        )
        return await asyncio.to_thread(_send, request)


def _object(at: Location, path: str) -> str:
    return f"/storage/v1/b/{at.authority}/o/{quote(f'{at.path}/{path}', safe='')}"


def _send(request: urllib.request.Request) -> bytes:
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as exc:
        with exc:
            if exc.code == 403:
                raise Denied(exc.read().decode()) from exc
            if exc.code == 404:
                raise Missing(str(exc.code)) from exc
            raise
