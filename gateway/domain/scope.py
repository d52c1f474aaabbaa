"""What a credential opens, and whom it names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.domain.location import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """All that a credential depends on besides its storage's settings: an issuer is told nothing else."""

    location: Location
    # Whom the credential names. Empty where a store's credentials name nobody, so that all may share one.
    recipient: str = ""
    # What the provider is asked for; it may give less.
    life: timedelta
    # When the recipient's credentials were last revoked: none from before that is served again.
    revoked_at: datetime | None = None
