"""Tries what a credential opens in an object store, through obstore."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import obstore
from obstore.store import ObjectStore

from gateway.domain.credential import Credential
from gateway.domain.location import Location
from gateway.domain.probe import Action, Attempt, Verdict
from vendors.obstore_error import Failure, read_error
from vendors.obstore_reader import key_below

# Enough to see what a listing reveals, whatever the prefix holds.
MOST_NAMES: Final = 1000

_VERDICTS: Final = {
    Failure.MISSING: Verdict.MISSING,
    Failure.DENIED: Verdict.DENIED,
    Failure.FAILED: Verdict.FAILED,
}

# Returns at most ``MOST_NAMES`` keys that begin with a prefix, as the credential or as the storage itself.
ListKeys = Callable[[Credential | None, str], Awaitable[Sequence[str]]]


class ObstoreProbe:
    """Takes stores that are opened on the whole bucket or container, its own perhaps on first use.

    obstore lists whole directories only. A vendor whose store lists by any prefix of a key gives
    ``list_keys``, which raises ``StoreRefused``; without it such a listing is FAILED, as nothing was tried.
    """

    def __init__(
        self,
        own: ObjectStore | Callable[[], Awaitable[ObjectStore]],
        open_with: Callable[[Credential], ObjectStore],
        *,
        list_keys: ListKeys | None = None,
    ) -> None:
        self._own = own
        self._open_with = open_with
        self._list_keys = list_keys

    async def attempt(
        self, credential: Credential | None, action: Action, at: Location, path: str
    ) -> Attempt:
        key = key_below(at, path)
        try:
            if action is Action.LIST:
                return await self._list(credential, at, key)
            await _act(await self._store(credential), action, key)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the table of attempts names it
            error = read_error(exc)
            return Attempt(verdict=_VERDICTS[error.failure], detail=error.words)
        return Attempt(verdict=Verdict.ALLOWED)

    async def _list(self, credential: Credential | None, at: Location, prefix: str) -> Attempt:
        if self._list_keys is not None:
            keys = await self._list_keys(credential, prefix)
        elif prefix and not prefix.endswith("/"):
            return Attempt(verdict=Verdict.FAILED, detail="this store is listed by whole directories only")
        else:
            keys = await _list(await self._store(credential), prefix)
        top = key_below(at, "")
        names = tuple(sorted(key.removeprefix(top) for key in keys))
        return Attempt(verdict=Verdict.ALLOWED, names=names)

    async def _store(self, credential: Credential | None) -> ObjectStore:
        if credential is not None:
            return self._open_with(credential)
        if callable(self._own):
            self._own = await self._own()
        return self._own


async def _act(store: ObjectStore, action: Action, key: str) -> None:
    if action is Action.READ:
        # Not HEAD: a refusal without a body does not say what was refused.
        await obstore.get_async(store, key)
    elif action is Action.WRITE:
        await obstore.put_async(store, key, b"")
    else:
        await obstore.delete_async(store, key)


async def _list(store: ObjectStore, prefix: str) -> list[str]:
    # A page is read when it is asked for: the rest of a long listing never is.
    async for page in obstore.list(store, prefix.removesuffix("/") or None, chunk_size=MOST_NAMES):
        return [meta["path"] for meta in page]
    return []
