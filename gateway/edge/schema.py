"""Request bodies: read within their limits, validated by pydantic here and nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Final, TypeVar

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from gateway.errors import MALFORMED_REQUEST, InvalidArgument, NotFound

_JSON: Final = "application/json"
_NOT_JSON: Final = "json_invalid"
_OUT_OF_RANGE: Final = frozenset({"greater_than_equal", "less_than_equal"})

Int64 = Annotated[int, Field(ge=0, le=2**63 - 1)]
PageSize = Annotated[int, Field(ge=1, le=2**31 - 1)]


class QueryBody(BaseModel):
    """What may stand in the body of a query; fields that are not listed are ignored, null is as absent."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel)

    predicate_hints: list[str] | None = None
    json_predicate_hints: str | None = None
    limit_hint: Int64 | None = None
    version: Int64 | None = None
    timestamp: str | None = None
    starting_version: Int64 | None = None
    # Means nothing without a starting version.
    ending_version: Int64 | None = None
    include_historical_protocol: bool | None = None
    max_files: PageSize | None = None
    # An empty token is as none: some servers end their lists with one, and clients send it back.
    page_token: str | None = None
    include_refresh_token: bool | None = None
    refresh_token: str | None = None
    # Two spellings of one thing: the protocol's, and a client's.
    idempotency: str | None = Field(default=None, alias="idempotencyKey")
    client_idempotency: str | None = Field(default=None, alias="idempotency_key")

    @property
    def any_idempotency_key(self) -> str:
        return self.idempotency or self.client_idempotency or ""

    @property
    def may_wait(self) -> bool:
        """Tell whether it asks for a table as it is now, from its beginning."""
        begun = self.page_token or self.refresh_token
        return not begun and all(getattr(self, name) is None for name in _POINTS)

    def parameters(self) -> bytes:
        """Return what the answer depends on, the same bytes for the same question."""
        return self.model_dump_json(by_alias=True, exclude_none=True, exclude=_KEYS).encode()


class PollBody(BaseModel):
    """What may stand in the body of a request for a query's result; null is as absent."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel)

    max_files: PageSize | None = None
    page_token: str | None = None
    # A client sends what stands in the path already.
    query_id: str | None = None


class CredentialsBody(BaseModel):
    """What may stand in the body of a request for credentials; null is as absent."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel)

    location: str | None = None
    # What a draft of the protocol called it.
    auxiliary_location: str | None = None


# At most one of these says which state of the table is meant.
_POINTS: Final = ("version", "timestamp", "starting_version")
_KEYS: Final = {"idempotency", "client_idempotency"}

Body = TypeVar("Body", bound=BaseModel)


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
    parsed = _parse(QueryBody, request, body)
    points = [to_camel(name) for name in _POINTS if getattr(parsed, name) is not None]
    if len(points) > 1:
        raise InvalidArgument(f"Please only provide one of: {', '.join(map(to_camel, _POINTS))}")
    keys = {key for key in (parsed.idempotency, parsed.client_idempotency) if key}
    if len(keys) > 1:
        raise InvalidArgument("Please only provide one of: idempotencyKey, idempotency_key")
    refresh = _refresh_field(parsed)
    if refresh and points:
        raise InvalidArgument(
            f"{refresh} cannot be used when querying a specific version; leave out {points[0]}"
        )
    if refresh and parsed.page_token:
        raise InvalidArgument(
            f"{refresh} must be used in the first page request; leave it out of later pages, "
            "which are of its version"
        )
    return parsed


def parse_poll_body(request: web.Request, body: bytes, query_id: str) -> PollBody:
    """Return the parsed body of a request for the result of the query in the path."""
    parsed = _parse(PollBody, request, body)
    if parsed.query_id is not None and parsed.query_id != query_id:
        raise InvalidArgument("the request body names another query than the path")
    return parsed


def continued_query(parameters: bytes, poll: PollBody) -> QueryBody:
    """Return the query that was kept, for the part of its result that is asked for now."""
    try:
        kept = QueryBody.model_validate_json(parameters)
    except ValidationError as exc:
        raise NotFound("the query does not exist or has expired; query the table again") from exc
    update: dict[str, object] = {"page_token": poll.page_token}
    if poll.max_files is not None:
        update["max_files"] = poll.max_files
    return kept.model_copy(update=update)


def parse_credentials_body(request: web.Request, body: bytes) -> str | None:
    """Return the location that credentials are asked for; None: the table's own.

    Whatever could be meant in two ways is refused, since the answer would open the wrong place.
    """
    for field in CredentialsBody.model_fields:
        if request.query_string and to_camel(field) in request.query:
            raise InvalidArgument(f"{to_camel(field)} belongs in the request body, not in the query")
    if not body.strip():
        return None
    parsed = _parse(CredentialsBody, request, body)
    _refuse_repeated(body)
    asked = [text for text in (parsed.location, parsed.auxiliary_location) if text is not None]
    if len(set(asked)) > 1:
        raise InvalidArgument("Please only provide one of: location, auxiliaryLocation")
    return asked[0] if asked else None


def _parse(kind: type[Body], request: web.Request, body: bytes) -> Body:
    if not body.strip():
        return kind()
    _check_content_type(request)
    try:
        return kind.model_validate_json(body)
    except ValidationError as exc:
        raise _fault(exc) from exc


def _refresh_field(body: QueryBody) -> str:
    """Return the field that has to do with refreshing the URLs of the latest version, if there is one."""
    if body.include_refresh_token:
        return "includeRefreshToken"
    return "refreshToken" if body.refresh_token else ""


def _refuse_repeated(body: bytes) -> None:
    """Refuse an object that says something twice: readers differ in which of the two they take."""
    json.loads(body.decode(), object_pairs_hook=_without_repeats)


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidArgument("the request body repeats a field", error_code=MALFORMED_REQUEST)
    return found


def _check_content_type(request: web.Request) -> None:
    """Accept a body without a type too: the protocol makes the header optional."""
    if hdrs.CONTENT_TYPE not in request.headers:
        return
    if request.content_type != _JSON or (request.charset or "utf-8").lower() not in {"utf-8", "utf8"}:
        raise web.HTTPUnsupportedMediaType(
            reason=f"the request body must be JSON in utf-8: send Content-Type: {_JSON}"
        )


def _fault(exc: ValidationError) -> InvalidArgument:
    """Name the first fault, without repeating what was sent."""
    error = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in error["loc"])
    code = None if error["type"] in _OUT_OF_RANGE else MALFORMED_REQUEST
    if error["type"] == _NOT_JSON:
        position = error["msg"].removeprefix("Invalid JSON: ")
        return InvalidArgument(f"the request body is not valid JSON: {position}", error_code=code)
    if not where:
        return InvalidArgument("the request body must be a JSON object", error_code=code)
    return InvalidArgument(f"the request body's {where}: {error['msg'].lower()}", error_code=code)
