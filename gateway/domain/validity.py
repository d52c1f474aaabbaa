"""How long a certificate is good for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, order=True)
class Validity:
    """When a certificate ends, and how long it lived until then; the smallest is the first to end."""

    ends_at: datetime
    life: timedelta
