"""What the id of a request may look like, whoever presents it."""

from __future__ import annotations

import re
from typing import Final

_FIT: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


def fit_request_id(presented: str) -> str:
    """Return the id as it is where it is fit for logs, headers and audit events, else nothing."""
    return presented if _FIT.fullmatch(presented) else ""
