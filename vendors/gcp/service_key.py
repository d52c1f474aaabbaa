"""The private key of a service account."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gateway.errors import Unavailable
from vendors.options import why_unreadable

_PADDING: Final = padding.PKCS1v15()
_HASH: Final = hashes.SHA256()

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKey:
    """A key, and the account that it signs as."""

    email: str
    sign: Callable[[bytes], bytes] = field(repr=False)


class KeyReader:
    """Reads a key each time it is asked for, and parses it when it is another than before."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._parsed: tuple[str, ServiceKey] | None = None

    def read(self) -> ServiceKey:
        """Return the key as it is now; raise ``Unavailable`` when there is none. Reads a file."""
        try:
            text = self._read()
            parsed = self._parsed
            if parsed is None or parsed[0] != text:
                # Set at once, as other threads read it.
                parsed = self._parsed = (text, parse_key(text))
        except (OSError, ValueError) as exc:
            unreadable = why_unreadable(exc) if isinstance(exc, OSError) else ""
            log.warning("a storage has no key to sign with: %s", unreadable or "not a service account's key")
            raise Unavailable("the storage's own identity cannot sign at the moment") from None
        return parsed[1]


def parse_key(text: str) -> ServiceKey:
    """Return the key that a key file holds; raise ``ValueError``, which quotes none of it, for any other."""
    try:
        found = json.loads(text)
        email, pem = found["client_email"], found["private_key"]
        key: Any = load_pem_private_key(pem.encode(), password=None)
        is_right = isinstance(email, str) and isinstance(key, rsa.RSAPrivateKey)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UnsupportedAlgorithm):
        is_right = False
    if not is_right:
        raise ValueError("not the key file of a service account")
    return ServiceKey(email=email, sign=lambda message: key.sign(message, _PADDING, _HASH))
