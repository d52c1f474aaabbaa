"""What definitions of views have left that no configuration has any more."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from gateway.domain.manifest import (
    MANIFESTS,
    Manifest,
    ManifestError,
    fingerprint_of,
    manifest_key,
    read_manifest,
)
from gateway.domain.name import TableName, fold
from gateway.ports import Clock, StateEntry, StateKey, StateStore

# For so long a former showing stays as it is: replicas may still be taking up the configuration that has
# done away with it, or somebody may take that back.
NOTICE: Final = timedelta(hours=1)

_PAGE: Final = 1000
# In one run: the next one goes on.
_MOST: Final = 100

log = logging.getLogger(__name__)


class FormerShowings:
    """Hides what is shown to nobody any more, and names it once nobody can have access to it.

    Only showings of views that there are: who lost a whole view by mistake finds what it had made. And only
    what was made before this configuration was taken up: what came later may be of a newer one.
    """

    def __init__(self, state: StateStore, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._since = clock()

    async def going(self, view: TableName, current: Collection[str], kept_for: timedelta) -> Sequence[str]:
        """Return the fingerprints of a view's former showings whose directories may go."""
        found: list[str] = []
        async for key, entry, manifest in self._former(view, current):
            if manifest.hidden_from is None and manifest.refreshed_at < self._since:
                await self._hide(key, entry, manifest)
            elif manifest.hidden_from is not None and manifest.hidden_from + kept_for <= self._clock():
                found.append(manifest.fingerprint)
            if len(found) == _MOST:
                break
        return found

    async def forget(self, fingerprint: str, current: Collection[str]) -> None:
        """Forget a showing whose directory is gone, unless somebody has made it anew meanwhile."""
        entry = await self._state.get(manifest_key(fingerprint))
        manifest = None if entry is None else _read(entry)
        if fingerprint not in current and manifest is not None and manifest.is_hidden(self._clock()):
            await self._state.delete(manifest_key(fingerprint))

    async def _former(
        self, view: TableName, current: Collection[str]
    ) -> AsyncIterator[tuple[str, StateEntry, Manifest]]:
        async for state_key in self._manifests():
            fingerprint = fingerprint_of(state_key.key)
            if fingerprint is None or fingerprint in current:
                continue
            entry = await self._state.get(state_key.key)
            manifest = None if entry is None else _read(entry)
            if entry is None or manifest is None or manifest.fingerprint != fingerprint:
                continue
            if fold(manifest.view) == fold(str(view)):
                yield state_key.key, entry, manifest

    async def _manifests(self) -> AsyncIterator[StateKey]:
        page = await self._state.list(MANIFESTS, limit=_PAGE)
        while page:
            for key in page:
                yield key
            page = await self._state.list(MANIFESTS, after=page[-1].key, limit=_PAGE)

    async def _hide(self, key: str, entry: StateEntry, manifest: Manifest) -> None:
        hidden = replace(manifest, hidden_from=self._clock() + NOTICE)
        # Where somebody else was quicker it is theirs to say what becomes of it.
        if await self._state.replace(key, hidden.encode(), entry.tag) is not None:
            log.info("a former definition of the view %s is to be forgotten", manifest.view)


def _read(entry: StateEntry) -> Manifest | None:
    try:
        return read_manifest(entry.content)
    except ManifestError:
        # Whose it is cannot be told, so nothing is done to it.
        return None
