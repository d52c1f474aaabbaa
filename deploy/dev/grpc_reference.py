"""Writes docs/reference/grpc.md and the service config of the examples, from the protos and from the code.

With ``--check`` it writes nothing, and fails when what lies there is not what it would write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from deploy.dev.proto_text import ProtoText, UndocumentedError, read_protos, table
from gateway import errors
from gateway.config.schema import ServicesConfig
from gateway.domain.grant import MAX_LIFE
from gateway.edge.errors import HTTP
from gateway.rpc import service_token
from gateway.rpc.deadline import STREAM_LIMIT
from gateway.rpc.dial import MAX_MESSAGE_BYTES
from gateway.rpc.server import MAX_REQUEST_BYTES
from gateway.rpc.service_config import service_config_json
from gateway.rpc.status import STATUS
from gateway.services.catalog import paging
from gateway.services.catalog.showings import VIEW_FAILED, VIEW_PENDING
from gateway.services.presign import codec
from gateway.services.snapshot.answer import batch

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = "docs/reference/grpc.md"
SERVICE_CONFIG: Final = "docs/examples/platform/service-config.json"

_HEAD: Final = """# gRPC reference

<!-- Written by `make proto` from proto/gateway/v1 and from the code. Changes go there. -->

Package `gateway.v1`, in `proto/gateway/v1`. How to get an identity, a grant and a credential, and what v1
promises: [platform-services.md](../platform-services.md).
"""
_METADATA: Final = """## Metadata

| with a call | |
| --- | --- |
| `authorization` | `Bearer` and a JWT for the service that is called, of a caller that proves itself by one |
| `x-request-id` | in log lines and audit events; 1 to 128 letters, digits, `.`, `_`, `-`, else left out |
| `traceparent` | W3C trace context |

| with a status | |
| --- | --- |
| `sluice-error-code` | what went wrong: see Errors. A status without it was not made by a service |
| `sluice-retry-after-ms` | how long to wait before the next attempt can succeed |
| `grpc-retry-pushback-ms` | `-1` beside it, so that gRPC's own quick retries leave it to you |
"""
_TRY_AGAIN: Final[Mapping[type[errors.GatewayError], str]] = {
    errors.Unauthenticated: "with a new grant or token",
    errors.Throttled: "after `sluice-retry-after-ms`",
    errors.Unavailable: "yes; after `sluice-retry-after-ms` where it is given",
    errors.DeadlineExceeded: "with more time",
}
# What a code says where its status has another one too.
_OTHER_CODES: Final[Mapping[str, tuple[type[errors.GatewayError], str]]] = {
    errors.SERVICE_REFUSED: (
        errors.PermissionDenied,
        "the calling service itself is refused: it lacks a permission or a method, or is not known (with "
        "the status `UNAUTHENTICATED`)",
    ),
    VIEW_PENDING: (errors.Unavailable, "a view has nothing to show yet"),
    VIEW_FAILED: (errors.Unavailable, "a view could not be made"),
}


def main() -> int:
    try:
        written = {PAGE: page(), SERVICE_CONFIG: service_config_json()}
    except UndocumentedError as exc:
        sys.stderr.write(f"reference: {exc}\n")
        return 1
    if "--check" in sys.argv[1:]:
        return _check(written)
    for name, text in written.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8")
    return 0


def page() -> str:
    """Return the whole reference."""
    texts = [ProtoText(file) for file in read_protos(ROOT / "proto")]
    parts = [_HEAD, "## Services"]
    parts += [part for text in texts for part in text.services()]
    parts += [_METADATA, *_errors(), *_limits(), "## Messages"]
    parts += [part for text in texts for part in text.messages()]
    # A method's line and its comment are one paragraph.
    return "\n\n".join(part.rstrip("\n") for part in parts).replace("  \n\n", "  \n") + "\n"


def _check(written: Mapping[str, str]) -> int:
    stale = [name for name, text in written.items() if not _is_fresh(ROOT / name, text)]
    for name in stale:
        sys.stderr.write(f"reference: {name} is not what the protos and the code say: run `make proto`\n")
    return 1 if stale else 0


def _is_fresh(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8") == text


def _errors() -> Iterator[str]:
    yield "## Errors"
    yield (
        "A message is for people; programs go by the status and `sluice-error-code`. What REST answers for "
        "the same error stands beside it."
    )
    rows = []
    for error, status in STATUS.items():
        again = _TRY_AGAIN.get(error, "no")
        rows.append((f"`{status.name}`", f"`{error.default_code}`", _meaning(error), again, str(HTTP[error])))
    for code, (error, meaning) in _OTHER_CODES.items():
        again = _TRY_AGAIN.get(error, "no")
        rows.append((f"`{STATUS[error].name}`", f"`{code}`", meaning, again, str(HTTP[error])))
    yield table(("status", "`sluice-error-code`", "meaning", "try again?", "REST"), rows)


def _meaning(error: type[errors.GatewayError]) -> str:
    """Return what the tree in the module's docstring says of an error."""
    for line in (errors.__doc__ or "").splitlines():
        _, _, text = line.partition("── ")
        name, _, meaning = text.partition(" ")
        if name == error.__name__:
            return meaning.strip()
    raise UndocumentedError(f"the docstring of gateway/errors.py does not explain {error.__name__}")


def _limits() -> Iterator[str]:
    yield "## Limits and deadlines"
    rows = [
        ("a request", f"{MAX_REQUEST_BYTES // 2**20} MiB: `RESOURCE_EXHAUSTED`, by gRPC itself"),
        (
            "a message of an answer",
            f"{MAX_MESSAGE_BYTES // 2**20} MiB; raise a client's own limit, which is 4 MiB, to that",
        ),
        ("items in a page of a list", f"{paging.DEFAULT_SIZE} unless asked for, {paging.MAX_SIZE:,} at most"),
        ("a `FilePage`", f"{batch.MAX_FILES:,} files or {batch.MAX_BYTES // 2**20} MiB of lines"),
        ("paths in a `SignRequest`", f"{codec.MAX_PATHS:,}, of {codec.MAX_BYTES // 2**20} MiB together"),
        ("the life of a grant", f"{_span(MAX_LIFE)} at most; a stream is authorised at its start"),
        ("the age of a service's JWT", f"{_span(service_token.MAX_AGE)} at most, whatever its `exp` says"),
        (
            "a call",
            f"`services.timeout` ({_span(ServicesConfig().timeout)}), however much more its caller allows: "
            "`DEADLINE_EXCEEDED`",
        ),
        ("the first message of a stream", "the same"),
        ("a whole stream", f"{_span(STREAM_LIMIT)}"),
        (
            "calls of one caller",
            "`principals[].rate` and `principals[].concurrentCalls`: `RESOURCE_EXHAUSTED`",
        ),
    ]
    yield table(("what", "limit"), rows)


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    hours, rest = divmod(seconds, 3600)
    return f"{hours} h" if hours and not rest else f"{seconds} s"


if __name__ == "__main__":
    sys.exit(main())
