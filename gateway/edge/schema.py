"""Request bodies: read within their limits, validated by pydantic here and nowhere else."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Final

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from gateway.errors import MALFORMED_REQUEST, InvalidArgument, Unsupported

_JSON: Final = "application/json"
_OUT_OF_RANGE: Final = frozenset({"greater_than_equal", "less_than_equal"})

Int64 = Annotated[int, Field(ge=0, le=2**63 - 1)]


class QueryBody(BaseModel):
    """What may stand in the body of a query; fields that are not listed are ignored, null is as absent."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel)

    predicate_hints: list[str] | None = None
    json_predicate_hints: str | None = None
    limit_hint: Int64 | None = None
    version: Int64 | None = None
    timestamp: str | None = None
    starting_version: Int64 | None = None
    ending_version: Int64 | None = None
    refresh_token: str | None = None
    page_token: str | None = None
    # An answer without a refresh token, and one that is whole, are fair answers to these.
    include_refresh_token: bool | None = None
    max_files: int | None = None


# To ignore one of these would be to give another answer than the one that was asked for.
_UNSUPPORTED: Final = ("starting_version", "refresh_token", "page_token")


async def read_body(request: web.Request, limit: int, timeout: timedelta) -> bytes:
    """Return the body; refuse one that is too large, too slow or compressed."""
    if not request.can_read_body:
        return b""
    if (request.content_length or 0) > limit:
        raise web.HTTPRequestEntityTooLarge(max_size=limit, actual_size=request.content_length or 0)
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise web.HTTPUnsupportedMediaType(reason="a request body must not be compressed")
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            return await request.read()
    except TimeoutError as exc:
        raise web.HTTPRequestTimeout(reason="the request body took too long to arrive") from exc


def parse_query_body(request: web.Request, body: bytes) -> QueryBody:
    """Return the parsed body of a query; nothing at all is as good as an empty object."""
    if not body.strip():
        return QueryBody()
    _check_content_type(request)
    try:
        parsed = QueryBody.model_validate_json(body)
    except ValidationError as exc:
        raise _fault(exc) from exc
    for field in _UNSUPPORTED:
        if getattr(parsed, field) is not None:
            raise Unsupported(f"{to_camel(field)} is not supported by this server")
    return parsed


def _check_content_type(request: web.Request) -> None:
    """Accept a body without a type too: the protocol makes the header optional."""
    if hdrs.CONTENT_TYPE not in request.headers:
        return
    if request.content_type != _JSON or (request.charset or "utf-8").lower() not in {"utf-8", "utf8"}:
        raise web.HTTPUnsupportedMediaType(reason=f"the request body must be {_JSON} in utf-8")


def _fault(exc: ValidationError) -> InvalidArgument:
    """Name the first fault, without repeating what was sent."""
    error = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in error["loc"])
    code = None if error["type"] in _OUT_OF_RANGE else MALFORMED_REQUEST
    if not where:
        return InvalidArgument("the request body must be a JSON object", error_code=code)
    return InvalidArgument(f"the request body's {where}: {error['msg'].lower()}", error_code=code)
