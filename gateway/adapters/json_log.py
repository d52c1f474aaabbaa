"""Log lines of JSON on standard error, each with the id of the request it was written for."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

from gateway.rpc.metadata import current_request_id

REDACTED: Final = "[redacted]"

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OWN: Final = frozenset({"ts", "level", "logger", "request_id", "exception", "stack"})
_MAX_DEPTH: Final = 5
_MAX_TEXT: Final = 16 * 1024

_SENSITIVE: Final = r"(?:token|secret|passw(?:or)?d|passphrase|authorization|api[_-]?key|private[_-]?key)"
_SENSITIVE_KEY: Final = re.compile(_SENSITIVE, re.IGNORECASE)
_SECRETS: Final = (
    # A block that is cut off is as secret as a whole one.
    (
        re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----[\s\S]*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)"),
        REDACTED,
    ),
    # Not the plain word that follows in "bearer token" or "basic authentication".
    (
        re.compile(
            r"\b((?i:bearer|basic))((?:[\s\"':=]|%20)+)"
            r"(?:(?=[a-z]*[^a-z\s\"',;])[^\s\"',;\[]{6,}|[^\s\"',;\[]{16,})"
        ),
        rf"\1\2{REDACTED}",
    ),
    # JWTs, and the tokens that we make ourselves.
    (re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_.-]+|\bslc_[A-Za-z0-9_-]{16,}"), REDACTED),
    # Signatures and session tokens in the queries of presigned URLs.
    (
        re.compile(
            r"\b(sig|signature|x-[a-z]{2,12}-(?:signature|security-token|credential))(=|%3d)[^&\s\"'<>]*",
            re.IGNORECASE,
        ),
        rf"\1\2{REDACTED}",
    ),
    (
        re.compile(
            rf"({_SENSITIVE}[\w-]{{0,40}}\\?[\"']?\s*[=:>]\s*\\?[\"']?)(?!\[redacted\])[^\s\"'&,;<>]{{8,}}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
)


# What they say of their work at debug level are whole answers of token services.
_TALKATIVE: Final = ("azure", "boto3", "botocore", "google", "msal", "redis", "requests", "urllib3")

# They warn, with a trace or a token service's whole answer, of what we say in our own words.
_REPEATING: Final = ("azure.identity", "botocore.credentials")


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Send all logs of the process, and warnings, to a stream as lines of JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    for name in _REPEATING:
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.captureWarnings(capture=True)


class JsonFormatter(logging.Formatter):
    """Renders a record as one line of ASCII, without what looks like a secret."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "ts": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _shortened(_message(record)),
            "request_id": current_request_id.get(),
        }
        for key, value in vars(record).items():
            if key not in _STANDARD:
                entry[f"{key}_" if key in _OWN else key] = _plain(key, value)
        if record.exc_info:
            entry["exception"] = _shortened(self.formatException(record.exc_info))
        if record.stack_info:
            entry["stack"] = _shortened(self.formatStack(record.stack_info))
        return json.dumps(entry, separators=(",", ":"))


def redact(text: str) -> str:
    """Return the text without tokens, signatures and keys, as far as they can be told by their looks.

    A second line of defence: the first is not to log them.
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _timestamp(created: float) -> str:
    moment = datetime.fromtimestamp(created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(key: str, value: object, depth: int = 0) -> object:
    """Return a value that JSON can hold, whatever was logged."""
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if _SENSITIVE_KEY.search(key):
        return REDACTED
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        return {redact(str(name)): _plain(str(name), part, depth + 1) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < _MAX_DEPTH:
        return [_plain(key, part, depth + 1) for part in value]
    return _shortened(_text(value))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 -- a wrong format string costs its arguments, not the line
        return f"{record.msg} (its arguments do not fit)"


def _shortened(text: str) -> str:
    text = redact(text)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}... ({len(text)} characters)"


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 -- a log line must not be lost for a value that cannot be printed
        return f"<{type(value).__name__}>"
