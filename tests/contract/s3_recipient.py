"""A recipient of credentials for an S3 store, who uses boto3."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location, parse_location
from gateway.ports import Storage
from tests.contract.issuing import Denied, Missing
from tests.stores.s3 import Keys, S3Store, keys_of

_MISSING = {"NoSuchKey", "404"}
# Each holds a connection. More than a test uses in turn.
_MOST_CLIENTS = 8


class S3Harness:
    """A storage on an S3 store: its owner writes with the administrator's keys, recipients with theirs."""

    def __init__(self, storage: Storage, store: S3Store, role_arn: str = "") -> None:
        self.storage = storage
        self._store = store
        self._role_arn = role_arn or "arn:aws:iam::000000000000:role/any"
        self._clients: dict[Keys, Any] = {}
        # A harness ends with its test.
        weakref.finalize(self, _close, self._clients)

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.storage.prefix.text}/{directory}")

    def elsewhere(self, directory: str) -> Location:
        bucket = self._store.make_bucket(f"{self.storage.prefix.authority}-other")
        return parse_location(f"s3://{bucket}/{directory}")

    async def put(self, at: Location, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._store.put, at.authority, f"{at.path}/{path}", content)

    async def read(self, credential: Credential, at: Location, path: str) -> bytes:
        content: bytes = await asyncio.to_thread(self._read, credential, at, path)
        return content

    async def listing(self, credential: Credential, at: Location, prefix: str) -> Sequence[str]:
        return await asyncio.to_thread(self._list, credential, at, prefix)

    async def write(self, credential: Credential, at: Location, path: str, content: bytes) -> None:
        await self.call(credential, "put_object", Bucket=at.authority, Key=f"{at.path}/{path}", Body=content)

    async def delete(self, credential: Credential, at: Location, path: str) -> None:
        await self.call(credential, "delete_object", Bucket=at.authority, Key=f"{at.path}/{path}")

    async def call(self, credential: Credential, method: str, **parameters: object) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = await asyncio.to_thread(self._call, credential, method, parameters)
        # A deletion of many is answered with 200, and says of each what became of it.
        refused = {error["Code"] for error in answer.get("Errors", ())}
        if "AccessDenied" in refused:
            raise Denied(*refused)
        return answer

    async def assume_role(self, credential: Credential) -> Credential | None:
        return await asyncio.to_thread(self._assume_role, credential)

    def client(self, credential: Credential) -> Any:
        """Return the client that acts with this credential; to create one takes longer than a call."""
        keys = _keys(credential)
        if keys not in self._clients:
            if len(self._clients) == _MOST_CLIENTS:
                self._clients.pop(next(iter(self._clients))).close()
            self._clients[keys] = self._store.client(keys)
        return self._clients[keys]

    def _read(self, credential: Credential, at: Location, path: str) -> Any:
        parameters = {"Bucket": at.authority, "Key": f"{at.path}/{path}"}
        return self._call(credential, "get_object", parameters)["Body"].read()

    def _list(self, credential: Credential, at: Location, prefix: str) -> list[str]:
        answer = self._call(credential, "list_objects_v2", {"Bucket": at.authority, "Prefix": prefix})
        return [entry["Key"] for entry in answer.get("Contents", ())]

    def _assume_role(self, credential: Credential) -> Credential | None:
        client = self._store.client(_keys(credential), "sts")
        try:
            answer = client.assume_role(RoleArn=self._role_arn, RoleSessionName="wider", DurationSeconds=900)
        except ClientError as exc:
            # Anything else would be a question that the store did not understand.
            if exc.response["Error"]["Code"] != "AccessDenied":
                raise
            return None
        finally:
            client.close()
        keys = keys_of(answer["Credentials"])
        secret = AwsTempCredentials(
            access_key_id=keys.access_key_id,
            secret_access_key=keys.secret_access_key,
            session_token=keys.session_token or "",
        )
        expires_at = answer["Credentials"]["Expiration"]
        return Credential(id=keys.access_key_id, secret=secret, expires_at=expires_at)

    def _call(self, credential: Credential, method: str, parameters: Mapping[str, object]) -> Any:
        try:
            return getattr(self.client(credential), method)(**parameters)
        except ClientError as exc:
            code = exc.response["Error"]["Code"]
            if code == "AccessDenied":
                raise Denied(code) from exc
            if code in _MISSING:
                raise Missing(code) from exc
            raise


def _close(clients: Mapping[Keys, Any]) -> None:
    for client in clients.values():
        client.close()


def _keys(credential: Credential) -> Keys:
    assert isinstance(credential.secret, AwsTempCredentials)
    return Keys(
        access_key_id=credential.secret.access_key_id,
        secret_access_key=credential.secret.secret_access_key,
        session_token=credential.secret.session_token,
    )
