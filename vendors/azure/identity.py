"""Who the gateway itself is in Azure: tokens of the identity that the configuration names, and no other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import AioHttpTransport, AsyncHttpTransport
from azure.identity.aio import (
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)

from gateway.ports import Clock
from vendors.azure.config import (
    AzureOptions,
    ChainIdentity,
    ClientSecretIdentity,
    ManagedIdentity,
    WorkloadIdentity,
)
from vendors.azure.errors import identity_unavailable
from vendors.http import open_session
from vendors.options import why_unreadable
from vendors.renewal import Renewed

STORAGE_SCOPE: Final = "https://storage.azure.com/.default"

_TIMEOUT: Final = 10
_AHEAD: Final = timedelta(minutes=10)
# A request that is sent just now must not arrive with a token that has just expired.
_LEAST: Final = timedelta(minutes=1)
_ENTRA_CODE: Final = re.compile(r"AADSTS\d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    value: str = field(repr=False)
    expires_at: datetime


class SdkToken(Protocol):
    @property
    def token(self) -> str: ...

    @property
    def expires_on(self) -> int: ...


class SdkCredential(Protocol):
    async def get_token(self, *scopes: str) -> SdkToken: ...


OpenCredential = Callable[[AzureOptions, AsyncExitStack], Awaitable[SdkCredential]]


async def open_credential(
    options: AzureOptions, stack: AsyncExitStack, transport: AsyncHttpTransport[Any, Any] | None = None
) -> SdkCredential:
    """Return the SDK's credential for the identity that is named; the stack closes it.

    Its requests take the given transport; without one, a transport of their own.
    """
    if transport is None and options.ca_file:
        session = await stack.enter_async_context(open_session(options.ca_file, auto_decompress=False))
        transport = AioHttpTransport(session=session, session_owner=False)
    common: dict[str, Any] = {} if transport is None else {"transport": transport}
    credential: AbstractAsyncContextManager[SdkCredential] = await _credential(options, common)
    return await stack.enter_async_context(credential)


class Tokens:
    """The identity's tokens for one audience.

    A credential of the SDK is opened for each fetch, about once an hour: a secret that was replaced in its
    file is read again, and nothing stays open.
    """

    def __init__(
        self,
        options: AzureOptions,
        storage: str,
        scope: str,
        clock: Clock,
        *,
        open_credential: OpenCredential = open_credential,
    ) -> None:
        self._options = options
        self._open_credential = open_credential
        self._storage = storage
        self._scope = scope
        self._kept: Renewed[Token] = Renewed(self._fetch, ahead=_AHEAD, least=_LEAST, clock=clock)

    async def get(self) -> Token:
        """Return a token; raise ``Unavailable`` when the identity gets none."""
        return await self._kept.get(_LEAST)

    async def _fetch(self, _: timedelta) -> Token:
        try:
            async with asyncio.timeout(_TIMEOUT), AsyncExitStack() as stack:
                credential = await self._open_credential(self._options, stack)
                found = await credential.get_token(self._scope)
                return Token(value=found.token, expires_at=datetime.fromtimestamp(found.expires_on, tz=UTC))
        except (AzureError, TimeoutError, OSError, ValueError) as exc:
            raise identity_unavailable(self._storage, _reason(exc)) from None


async def _credential(options: AzureOptions, common: dict[str, Any]) -> Any:
    identity = options.identity
    if isinstance(identity, ManagedIdentity):
        # Else, in a pod with a workload identity, it would be that one, at an authority of the environment's.
        machine: Any = partial(ManagedIdentityCredential, _exclude_workload_identity_credential=True)
        return machine(client_id=identity.client_id, **common)
    # Given always: the SDK would take another one from the environment.
    common = {**common, "authority": options.authority}
    if isinstance(identity, ClientSecretIdentity):
        secret = await asyncio.to_thread(identity.client_secret.read)
        return ClientSecretCredential(identity.tenant_id, identity.client_id, secret, **common)
    if isinstance(identity, WorkloadIdentity):
        return WorkloadIdentityCredential(
            tenant_id=identity.tenant_id,
            client_id=identity.client_id,
            token_file_path=identity.token_file,
            **common,
        )
    if not isinstance(identity, ChainIdentity):
        raise TypeError(f"an identity that gets no tokens: {identity.kind}")
    return DefaultAzureCredential(**common)


def _reason(exc: Exception) -> str:
    """Return what is safe to log: the SDK's own text repeats answers."""
    if isinstance(exc, OSError) and (unreadable := why_unreadable(exc)):
        return unreadable
    found = _ENTRA_CODE.search(str(exc))
    return f"{type(exc).__name__} {found.group()}" if found else type(exc).__name__
