"""What is remembered of one storage: put around what its vendor opens, and given to the vendor itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.adapters.cache.backoff import Backoff
from gateway.adapters.cache.fingerprint import Fingerprint
from gateway.adapters.cache.issuer import CachedIssuer, Shared
from gateway.adapters.cache.mint import Mint
from gateway.adapters.cache.provider import Count, Provider
from gateway.adapters.cache.sessions import CachedSessions, SharedSessions
from gateway.adapters.cache.signer import CachedSigner, SharedUrls
from gateway.adapters.cache.url_mint import UrlMint
from gateway.adapters.credential_metrics import CredentialMetrics
from gateway.adapters.storage_plan import PlannedStorage
from gateway.adapters.url_metrics import UrlMetrics
from gateway.ports import CredentialIssuer, Sessions, Signer, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlParts:
    """What all storages of a process that signs have in common."""

    metrics: UrlMetrics
    sessions: SharedSessions
    urls: SharedUrls


class StorageCache:
    """Of a storage as it is planned: when its settings change, nothing from before is found."""

    def __init__(
        self, planned: PlannedStorage, shared: Shared, metrics: CredentialMetrics, urls: UrlParts | None
    ) -> None:
        self._name = planned.name
        # Without entries there may be a storage for each table, by names that tell nothing.
        self._label = "default" if planned.url_only else planned.name
        self._shared = shared
        self._metrics = metrics
        self._urls = urls
        self._fingerprint = Fingerprint(planned, shared.monotonic)
        # None where the process does not sign.
        self.sessions: Sessions | None = None if urls is None else self._new_sessions(urls)

    def wrap(self, storage: Storage) -> Storage:
        """Return the storage with an issuer and a signer that remember."""
        issuer, signer, urls = storage.issuer, storage.signer, self._urls
        return replace(
            storage,
            issuer=None if issuer is None else self._new_issuer(issuer),
            signer=signer if signer is None or urls is None else self._new_signer(signer, urls),
        )

    def _new_issuer(self, issuer: CredentialIssuer) -> CachedIssuer:
        series = self._metrics.storage(self._name)
        provider = self._new_provider(series.count_mint)
        return CachedIssuer(
            Mint(issuer, provider, storage=self._name, clock=self._shared.clock),
            self._shared,
            fingerprint=self._fingerprint,
            series=series,
            names_recipients=issuer.names_recipients,
        )

    def _new_sessions(self, urls: UrlParts) -> CachedSessions:
        series = urls.metrics.storage(self._label)
        return CachedSessions(
            self._new_provider(series.count_session_mint),
            urls.sessions,
            storage=self._name,
            fingerprint=self._fingerprint,
            series=series,
        )

    def _new_signer(self, signer: Signer, urls: UrlParts) -> CachedSigner:
        series = urls.metrics.storage(self._label)
        mint = UrlMint(
            signer,
            self._new_provider(series.count_signing),
            series=series,
            clock=self._shared.clock,
            monotonic=self._shared.monotonic,
        )
        return CachedSigner(
            signer, mint, urls.urls, storage=self._name, fingerprint=self._fingerprint, series=series
        )

    def _new_provider(self, count: Count) -> Provider:
        shared = self._shared
        return Provider(Backoff(shared.chance, shared.monotonic), count, monotonic=shared.monotonic)
