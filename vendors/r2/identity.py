"""Who the gateway itself is at Cloudflare: the keys of an R2 API token, the parent of what is issued."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from gateway.errors import Unavailable
from vendors.options import SecretOptions, why_unreadable
from vendors.r2.config import KeysOptions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    access_key_id: str
    secret_access_key: str = field(repr=False)


class Identity:
    """Reads the secret each time it is needed: its file may have been replaced since."""

    def __init__(self, options: KeysOptions) -> None:
        self._options = options

    async def parent(self) -> Parent:
        secret = await read_secret(self._options.secret_access_key, "identity.secretAccessKey")
        return Parent(access_key_id=self._options.access_key_id, secret_access_key=secret)


async def read_secret(options: SecretOptions, name: str) -> str:
    """Return a secret as it is now; raise ``Unavailable`` when there is none."""
    try:
        secret = await asyncio.to_thread(options.read)
    except (OSError, UnicodeDecodeError) as exc:
        reason = (why_unreadable(exc) if isinstance(exc, OSError) else "") or type(exc).__name__
        log.warning("the secret %s of a storage cannot be read: %s", name, reason)
        raise Unavailable("the storage's own identity has no access at the moment") from exc
    if not secret:
        log.warning("the secret %s of a storage is empty", name)
        raise Unavailable("the storage's own identity has no access at the moment")
    return secret
