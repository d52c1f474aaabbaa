"""URLs of local files that the gateway signs itself: one file, reading only, until a time.

``{base}/files/{storage}/{path}?sp=r&sdd={depth}&se={seconds}&kid={key}&sig={mac}``

``sdd`` is how many segments of the path make up the table's directory, which the file must not leave.
``sp`` also makes the URL look presigned to delta-kernel, which would otherwise open a local path.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gateway.domain.key import Key, Keys

PATH_PREFIX: Final = "files"
PERMISSION: Final = "r"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalUrl:
    """The parts of a signed URL, as they stand in it."""

    storage: str
    # Percent-encoded, below the storage's prefix.
    path: str
    depth: int
    expires_at: int
    key_id: str
    signature: str


def shared_query(key: Key, depth: int, expires_at: int) -> str:
    """Return the query that all files of a table share, up to the signature."""
    return f"sp={PERMISSION}&sdd={depth}&se={expires_at}&kid={key.id}&sig="


def sign(
    key: Key, storage: str, directory: str, paths: Iterable[str], *, depth: int, expires_at: int
) -> list[str]:
    """Return a signature for each percent-encoded path below the directory."""
    head = f"{PERMISSION}\n{depth}\n{expires_at}\n{storage}\n{directory}".encode()
    return [_text(key.mac(head + path.encode())) for path in paths]


def verify(url: LocalUrl, keys: Keys, now: datetime) -> bool:
    """Tell whether we signed this URL, as it is, and its time has not passed."""
    key = keys.find(url.key_id)
    if key is None:
        return False
    (expected,) = sign(key, url.storage, "", [url.path], depth=url.depth, expires_at=url.expires_at)
    if not hmac.compare_digest(expected.encode(), url.signature.encode()):
        return False
    return now < datetime.fromtimestamp(url.expires_at, tz=UTC)


def _text(mac: bytes) -> str:
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
