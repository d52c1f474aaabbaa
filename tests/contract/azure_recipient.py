"""A recipient of credentials for an Azure storage account, who uses Microsoft's SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient

from gateway.domain.credential import AzureUserDelegationSas, Credential
from gateway.domain.location import Location, parse_location
from gateway.ports import Storage
from tests.contract.issuing import Denied, Missing
from tests.doubles.azure import StorageAccount

T = TypeVar("T")

_DENIALS = {"AuthorizationPermissionMismatch", "AuthorizationFailure"}
# Azure says this of a path that the signature does not cover, and of a signature that is wrong: harmless for
# these tests, since each reads something by the same signature, too.
_NOT_COVERED = "AuthenticationFailed"


class AzureHarness:
    def __init__(self, storage: Storage, account: StorageAccount, container: str) -> None:
        self.storage = storage
        self._account = account
        self._container = container

    def location(self, directory: str) -> Location:
        return parse_location(f"{self.storage.prefix.text}/{directory}")

    def elsewhere(self, directory: str) -> Location:
        other, host = f"{self._container}-other", self.storage.prefix.authority.partition("@")[2]
        self._account.make_container(other)
        return parse_location(f"abfss://{other}@{host}/{directory}")

    async def put(self, at: Location, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._account.put, _container(at), f"{at.path}/{path}", content)

    async def read(self, credential: Credential, at: Location, path: str) -> bytes:
        key = f"{at.path}/{path}"
        return await self._ask(credential, at, lambda lake: lake.download_blob(key).readall())

    async def listing(self, credential: Credential, at: Location, prefix: str) -> Sequence[str]:
        return await self._ask(
            credential, at, lambda lake: list(lake.list_blob_names(name_starts_with=prefix))
        )

    async def write(self, credential: Credential, at: Location, path: str, content: bytes) -> None:
        key = f"{at.path}/{path}"
        await self._ask(credential, at, lambda lake: lake.upload_blob(key, content, overwrite=True))

    async def delete(self, credential: Credential, at: Location, path: str) -> None:
        await self._ask(credential, at, lambda lake: lake.delete_blob(f"{at.path}/{path}"))

    async def _ask(self, credential: Credential, at: Location, call: Callable[[ContainerClient], T]) -> T:
        return await asyncio.to_thread(self._call, credential, at, call)

    def _call(self, credential: Credential, at: Location, call: Callable[[ContainerClient], T]) -> T:
        assert isinstance(credential.secret, AzureUserDelegationSas)
        with ContainerClient(
            self._account.endpoint,
            _container(at),
            credential=credential.secret.sas_token,
            connection_verify=str(self._account.ca),
            retry_total=0,
        ) as lake:
            try:
                return call(lake)
            except HttpResponseError as exc:
                raise _told(exc) from exc


def _container(at: Location) -> str:
    return at.authority.partition("@")[0]


def _told(exc: HttpResponseError) -> Exception:
    code = vars(exc).get("error_code")
    if code in _DENIALS or code == _NOT_COVERED:
        return Denied(code)
    return Missing(code) if exc.status_code == 404 else exc
