"""Asks a signer for signatures, and judges what comes back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from gateway.adapters.cache.promise import least_left
from gateway.adapters.cache.provider import Provider, outcome_of
from gateway.adapters.cache.replicas import Minted
from gateway.adapters.cache.url_memory import Asked, Known
from gateway.adapters.credential_metrics import Outcome
from gateway.adapters.url_metrics import UrlSeries
from gateway.domain.file_path import Paths
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Internal
from gateway.ports import Clock, Signatures, Signer, SigningCost

# The calls of a page wait for their turn behind those of others, which says nothing about the provider; the
# signer bounds each of them. Who asked may have left by then: the page is there when it is asked for again.
_SPAN: Final = timedelta(minutes=5)

log = logging.getLogger(__name__)


class UrlMint:
    """The signer of one storage."""

    def __init__(
        self,
        signer: Signer,
        provider: Provider,
        *,
        series: UrlSeries,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        span: timedelta = _SPAN,
    ) -> None:
        self.provider = provider
        self._signer = signer
        self._series = series
        self._clock = clock
        self._monotonic = monotonic
        self._span = span
        self._has_warned = False

    async def sign(self, table: Location, paths: Paths, window: Window) -> Signatures:
        """Return a signature for each path, fresh."""
        if self._signer.cost is SigningCost.CALL:
            signatures, _ = await self.provider.ask(
                lambda: self._signer.sign(table, paths, window),
                lambda given: self._judge(given, window),
                self._span,
            )
        else:
            signatures = await self._sign_here(table, paths, window)
        # A signature too few would give every file after it the URL of another.
        if len(signatures) != len(paths):
            raise Internal("internal error")
        return signatures

    async def complete(self, asked: Asked, known: Known) -> Minted[Signatures]:
        """Return the signatures of all paths, and for how long they may be kept; sign what is not known."""
        whole = None
        if known.by_path:
            lacking = known.lacking
            signed = await self.sign(asked.table, lacking, asked.window) if lacking.joined else None
            whole = known.joined(signed)
        if whole is None:
            whole = await self.sign(asked.table, asked.paths, asked.window)
        return Minted(whole, _life(whole, asked.window, self._clock()))

    async def _sign_here(self, table: Location, paths: Paths, window: Window) -> Signatures:
        began, outcome = self._monotonic(), Outcome.FAILED
        try:
            signatures = await self._signer.sign(table, paths, window)
            outcome = self._judge(signatures, window)
        except Exception as exc:
            outcome = outcome_of(exc)
            raise
        finally:
            self._series.count_signing(outcome, self._monotonic() - began)
        return signatures

    def _judge(self, signatures: Signatures, window: Window) -> Outcome:
        left = signatures.expires_at - self._clock()
        # Never what ends with its window, however late it comes: that is all there is.
        if signatures.expires_at >= window.expires_at or left >= least_left(window):
            return Outcome.MINTED
        if not self._has_warned:
            # Once: it is so for every page of the storage, and the metric counts them.
            self._has_warned = True
            log.warning(
                "the storage %s signs URLs that end in %d minutes, with what they are signed with, not in "
                "%d: they are handed out and not kept; see the limits of its identity and role",
                self._series.name,
                left / timedelta(minutes=1),
                (window.expires_at - self._clock()) / timedelta(minutes=1),
            )
        return Outcome.SHORT


def _life(signatures: Signatures, window: Window, now: datetime) -> timedelta | None:
    """Return for how long signatures may be handed out; None for not at all, or not again."""
    life = min(window.end, signatures.expires_at - least_left(window)) - now
    return life if life > timedelta(0) else None
