"""Azure's refusals, in the words of the gateway: short to the recipient, helpful in the log."""

from __future__ import annotations

import logging
import re
from typing import Final

from gateway.errors import Unavailable
from vendors.http import Reply

_FAILED: Final = "the storage does not give out credentials at the moment; try again later"
_CODE: Final = re.compile(r"[A-Za-z0-9]{1,80}")

log = logging.getLogger(__name__)


def error_code(reply: Reply) -> str:
    """Return Azure's own name for what went wrong; empty when it gave none."""
    code = reply.headers.get("x-ms-error-code", "")
    return code if _CODE.fullmatch(code) else ""


def unavailable(reply: Reply, storage: str, *, doing: str, needs: str) -> Unavailable:
    """Return the error for a refused call, having logged what the operator can do about it."""
    code = error_code(reply) or "no code"
    if reply.is_throttling:
        log.warning("storage %s: Azure throttles %s (%d %s)", storage, doing, reply.status, code)
        return Unavailable(_FAILED, retry_after=reply.retry_after)
    hint = f"; its identity needs {needs}" if reply.status in {401, 403} else ""
    log.error("storage %s: Azure refused %s (%d %s)%s", storage, doing, reply.status, code, hint)
    return Unavailable(_FAILED)


def key_unavailable(storage: str, reason: str) -> Unavailable:
    """Return the error for an account key that cannot be used, having logged the reason."""
    log.error("storage %s: its account key cannot be used: %s", storage, reason)
    return Unavailable(_FAILED)


def identity_unavailable(storage: str, reason: str) -> Unavailable:
    """Return the error for an identity that Entra does not believe, having logged the reason."""
    log.error("storage %s: the storage's own identity got no token: %s", storage, reason)
    return Unavailable(_FAILED)
