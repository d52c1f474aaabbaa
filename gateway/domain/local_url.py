"""URLs of local files that the gateway signs itself: one file, reading only, until a time.

``{base}/files/{storage}/{path}?sp=r&sdd={depth}&se={seconds}&kid={key}&sig={mac}``

``sdd`` is how many segments of the path make up the table's directory, which the file must not leave.
``sp`` also makes the URL look presigned to delta-kernel, which would otherwise open a local path.
"""

from __future__ import annotations

import binascii
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gateway.domain.file_path import decode_path, encode_path
from gateway.domain.key import Key, Keys
from gateway.errors import InvalidArgument

PATH_PREFIX: Final = "files"
PERMISSION: Final = "r"

_STORAGE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
# Numbers as we write them, so that a URL has no second spelling.
_QUERY: Final = {
    "sp": re.compile(PERMISSION),
    "sdd": re.compile(r"0|[1-9][0-9]{0,3}"),
    "se": re.compile(r"[1-9][0-9]{0,11}"),
    "kid": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "sig": re.compile(r"[A-Za-z0-9_-]{43}"),
}
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalUrl:
    """The parts of a signed URL."""

    storage: str
    # Below the storage's prefix, in the spelling that is signed, whichever one was sent.
    path: str
    depth: int
    expires_at: int
    key_id: str
    signature: str = field(repr=False)


def root_key(key: Key, root: str) -> Key:
    """Return the key for files below a directory: a storage that is moved must not take its URLs with it."""
    return Key(id=key.id, secret=key.mac(f"{PATH_PREFIX}\n{root}".encode()))


def shared_query(key: Key, depth: int, expires_at: int) -> str:
    """Return the query that all files of a table share, up to the signature."""
    return f"sp={PERMISSION}&sdd={depth}&se={expires_at}&kid={key.id}&sig="


def sign(
    key: Key, storage: str, directory: str, paths: Iterable[bytes], *, depth: int, expires_at: int
) -> list[str]:
    """Return a signature for each percent-encoded path below the directory, by the key of the root."""
    head = f"{PERMISSION}\n{depth}\n{expires_at}\n{storage}\n{directory}".encode()
    return _texts(key.macs(head, paths))


def parse(storage: str, path: str, query: str) -> LocalUrl | None:
    """Read the parts of a request as it was sent, undecoded; None for what we cannot have signed."""
    pairs = [pair.partition("=")[::2] for pair in query.split("&")]
    values = dict(pairs)
    if len(pairs) != len(_QUERY) or values.keys() != _QUERY.keys() or not _STORAGE.fullmatch(storage):
        return None
    if not all(_QUERY[name].fullmatch(value) for name, value in pairs):
        return None
    try:
        signed_path = encode_path(decode_path(path))
    except InvalidArgument:
        return None
    return LocalUrl(
        storage=storage,
        path=signed_path,
        depth=int(values["sdd"]),
        expires_at=int(values["se"]),
        key_id=values["kid"],
        signature=values["sig"],
    )


def verify(url: LocalUrl, root: str, keys: Keys, now: datetime) -> bool:
    """Tell whether we signed this URL, as it is, for a file below this root, and its time has not passed."""
    key = keys.find(url.key_id)
    if key is None:
        return False
    (expected,) = sign(
        root_key(key, root), url.storage, "", [url.path.encode()], depth=url.depth, expires_at=url.expires_at
    )
    return hmac.compare_digest(expected, url.signature) and now.timestamp() < url.expires_at


def _texts(macs: list[bytes]) -> list[str]:
    # A zero byte after each makes it a multiple of three, so that all are encoded in one go.
    padded = b"".join([mac + b"\0" for mac in macs])
    text = binascii.b2a_base64(padded, newline=False).translate(_URL_SAFE).decode()
    return [text[start : start + 43] for start in range(0, len(text), 44)]
