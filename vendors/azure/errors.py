"""Azure's refusals, in the words of the gateway: short to the recipient, helpful in the log."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Final

from gateway.errors import Unavailable
from vendors.azure.http import Response

_FAILED: Final = "the storage does not give out credentials at the moment; try again later"
_THROTTLING: Final = frozenset({429, 503})
_LONGEST_WAIT: Final = timedelta(minutes=10)
_DEFAULT_WAIT: Final = timedelta(seconds=5)
_CODE: Final = re.compile(r"[A-Za-z0-9]{1,80}")

log = logging.getLogger(__name__)


def error_code(response: Response) -> str:
    """Return Azure's own name for what went wrong; empty when it gave none."""
    code = response.headers.get("x-ms-error-code", "")
    return code if _CODE.fullmatch(code) else ""


def unavailable(response: Response, storage: str, *, doing: str, needs: str) -> Unavailable:
    """Return the error for a refused call, having logged what the operator can do about it."""
    code = error_code(response) or "no code"
    if response.status in _THROTTLING:
        log.warning("storage %s: Azure throttles %s (%d %s)", storage, doing, response.status, code)
        return Unavailable(_FAILED, retry_after=_retry_after(response))
    hint = f"; its identity needs {needs}" if response.status in {401, 403} else ""
    log.error("storage %s: Azure refused %s (%d %s)%s", storage, doing, response.status, code, hint)
    return Unavailable(_FAILED)


def identity_unavailable(storage: str, reason: str) -> Unavailable:
    """Return the error for an identity that Entra does not believe, having logged the reason."""
    log.error("storage %s: the storage's own identity got no token: %s", storage, reason)
    return Unavailable(_FAILED)


def _retry_after(response: Response) -> timedelta:
    text = response.headers.get("retry-after", "")
    if not text.isascii() or not text.isdigit():
        return _DEFAULT_WAIT
    return min(timedelta(seconds=int(text[:6])), _LONGEST_WAIT)
