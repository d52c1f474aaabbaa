"""A recipient of credentials for an S3 store, who uses boto3."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location, parse_location
from gateway.ports import Storage
from tests.contract.issuing import Denied, Missing
from tests.stores.s3 import Keys, S3Store

_MISSING = {"NoSuchKey", "404"}


class S3Harness:
    """A storage on an S3 store: its owner writes with the administrator's keys, recipients with theirs."""

    def __init__(self, storage: Storage, store: S3Store) -> None:
        self.storage = storage
        self._store = store

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.storage.prefix.text}/{directory}")

    async def put(self, at: Location, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._store.put, at.authority, f"{at.path}/{path}", content)

    async def read(self, credential: Credential, at: Location, path: str) -> bytes:
        content: bytes = await asyncio.to_thread(self._read, credential, at, path)
        return content

    async def listing(self, credential: Credential, at: Location, prefix: str) -> Sequence[str]:
        return await asyncio.to_thread(self._list, credential, at, prefix)

    async def write(self, credential: Credential, at: Location, path: str, content: bytes) -> None:
        parameters = {"Bucket": at.authority, "Key": f"{at.path}/{path}", "Body": content}
        await asyncio.to_thread(self._call, credential, "put_object", parameters)

    async def delete(self, credential: Credential, at: Location, path: str) -> None:
        parameters = {"Bucket": at.authority, "Key": f"{at.path}/{path}"}
        await asyncio.to_thread(self._call, credential, "delete_object", parameters)

    def _read(self, credential: Credential, at: Location, path: str) -> Any:
        parameters = {"Bucket": at.authority, "Key": f"{at.path}/{path}"}
        return self._call(credential, "get_object", parameters)["Body"].read()

    def _list(self, credential: Credential, at: Location, prefix: str) -> list[str]:
        answer = self._call(credential, "list_objects_v2", {"Bucket": at.authority, "Prefix": prefix})
        return [entry["Key"] for entry in answer.get("Contents", ())]

    def _call(self, credential: Credential, method: str, parameters: Mapping[str, object]) -> Any:
        client = self._store.client(_keys(credential))
        try:
            return getattr(client, method)(**parameters)
        except ClientError as exc:
            code = exc.response["Error"]["Code"]
            if code == "AccessDenied":
                raise Denied(code) from exc
            if code in _MISSING:
                raise Missing(code) from exc
            raise
        finally:
            client.close()


def _keys(credential: Credential) -> Keys:
    assert isinstance(credential.secret, AwsTempCredentials)
    return Keys(
        access_key_id=credential.secret.access_key_id,
        secret_access_key=credential.secret.secret_access_key,
        session_token=credential.secret.session_token,
    )
