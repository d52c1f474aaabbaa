"""The id of a request and its trace, as the client sent them or as we make them."""

from __future__ import annotations

import re
import secrets
from typing import Final

from gateway.domain.request_id import fit_request_id

# W3C trace context: later versions may append fields, version ff is forbidden, ids are not all zero.
_TRACEPARENT: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-[!-~]*)?"
)


def request_id_from(presented: str | None) -> str:
    """Return the presented id where it is fit for logs and headers, else a new one."""
    return fit_request_id(presented or "") or secrets.token_hex(16)


def traceparent_from(presented: str | None) -> str:
    """Return a valid traceparent as it is, else nothing."""
    match = _TRACEPARENT.fullmatch(presented) if presented else None
    if match is None or (match["version"] == "00" and match["more"]):
        return ""
    return match[0]
