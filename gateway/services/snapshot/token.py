"""Page and refresh tokens of answers that name files: where the next page starts, and of which version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from gateway.domain.grant import Grant
from gateway.domain.key import Keys
from gateway.domain.sealed_text import pack, seal, unseal
from gateway.errors import GatewayError, InvalidArgument, Unsupported
from gateway.ports import Clock
from gateway.v1.snapshot_pb2 import ChangesRequest, QueryRequest

# A path is as long as a file system lets it be; escaped and encoded it may be several times that.
MAX_LENGTH: Final = 64 * 1024

# What says which part of an answer is meant, or who asks, shapes no line of it.
_SHAPELESS: Final = ("grant", "max_files", "page_token", "refresh_token", "include_refresh_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """Where the next page of a version's files starts: behind a logical file, in the order of pages."""

    version: int
    path: str
    vector_id: str
    # What the pages so far have left of limitHint.
    limit: int | None = None
    # The id in its metadata: another table may come to be in the place of one.
    table: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePosition:
    """Where the next page of changes starts: at an action of a version."""

    # The range as the first page found it: what is committed later is not a part of this answer.
    start: int
    end: int
    version: int
    index: int
    # The id in its metadata, at the first version.
    table: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A version that later answers are of as well."""

    version: int
    # The id in its metadata.
    table: str = ""


Position = TypeVar("Position", FilePosition, ChangePosition)
Content = TypeVar("Content", FilePosition, ChangePosition, Pin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a token is good for: one table, one recipient, one question."""

    table_id: str
    location: str
    principal: str
    # A digest of the question.
    shape: str

    def purpose(self, kind: str) -> bytes:
        return pack(kind, self.table_id, self.location, self.principal, self.shape)


def bind(grant: Grant, request: QueryRequest | ChangesRequest) -> Binding:
    """Return what tokens of a request's answer are good for."""
    question = type(request)()
    question.CopyFrom(request)  # type: ignore[arg-type]  # both are of the same type
    for name in _SHAPELESS:
        if name in question.DESCRIPTOR.fields_by_name:
            question.ClearField(name)  # type: ignore[arg-type]  # a field that it has, by the line above
    _sort_capabilities(question)
    message = pack(question.DESCRIPTOR.full_name) + question.SerializeToString(deterministic=True)
    return Binding(
        table_id=grant.table_id,
        location=grant.location.text,
        principal=grant.principal,
        shape=hashlib.sha256(message).hexdigest(),
    )


def require_table(token: FilePosition | ChangePosition | Pin | None, table: str) -> None:
    """Refuse a token of a table in whose place there is another one by now."""
    if token is not None and token.table != table:
        raise _refused_refresh() if isinstance(token, Pin) else _refused_page()


class FileTokens:
    """Makes tokens, and opens them for those they were made for.

    They can be read by whoever holds them, and tell nothing that the answer which gave them did not. Whether
    the table may still be read is not for them to say: that is the grant's, of each request.
    """

    def __init__(
        self,
        *,
        page_keys: Keys,
        refresh_keys: Keys,
        page_life: timedelta,
        refresh_life: timedelta,
        clock: Clock,
    ) -> None:
        self._page_keys = page_keys
        self._refresh_keys = refresh_keys
        self._page_life = page_life
        self._refresh_life = refresh_life
        self._clock = clock

    def make_page(self, position: FilePosition | ChangePosition, binding: Binding) -> str:
        """Return the token of the page that starts there."""
        purpose = binding.purpose(type(position).__name__)
        token = seal(self._page_keys.current, purpose, self._body(self._page_life, position))
        if len(token) > MAX_LENGTH:
            raise Unsupported("a path of the table is too long for a page token; query it without maxFiles")
        return token

    def open_page(self, token: str, binding: Binding, kind: type[Position]) -> Position:
        """Return where the page starts; refuse a token of another question, an old one, and one of nobody."""
        purpose = binding.purpose(kind.__name__)
        return _content(kind, self._open(self._page_keys, purpose, token, _refused_page()))

    def make_refresh(self, pin: Pin, binding: Binding) -> str:
        """Return a token that pins later answers to a version, whatever part of it they ask for."""
        return seal(self._refresh_keys.current, _refresh(binding), self._body(self._refresh_life, pin))

    def open_refresh(self, token: str, binding: Binding) -> Pin:
        """Return what is pinned; refuse a token of another table or recipient, an old one, one of nobody."""
        return _content(Pin, self._open(self._refresh_keys, _refresh(binding), token, _refused_refresh()))

    def _body(self, life: timedelta, content: FilePosition | ChangePosition | Pin) -> bytes:
        return json.dumps([_milliseconds(self._clock() + life), *astuple(content)]).encode()

    def _open(self, keys: Keys, purpose: bytes, token: str, refusal: GatewayError) -> list[Any]:
        """Return the values of a token. One refusal for all that is wrong: which of it was helps nobody."""
        try:
            body = unseal(keys, purpose, token, MAX_LENGTH)
        except ValueError as exc:
            raise refusal from exc
        values: list[Any] = json.loads(body)
        if _milliseconds(self._clock()) >= values[0]:
            raise refusal
        return values[1:]


def _content(kind: type[Content], values: Sequence[Any]) -> Content:
    names = [field.name for field in fields(kind)]
    return kind(**dict(zip(names, values, strict=True)))


def _refused_page() -> InvalidArgument:
    return InvalidArgument(
        "the page token is not valid for this request, or has expired; leave it out to start from the "
        "first page, and send all other parameters as they were there"
    )


def _refused_refresh() -> InvalidArgument:
    return InvalidArgument(
        "the refresh token is not valid for this table, or has expired; leave it out to read the latest "
        "version"
    )


def _refresh(binding: Binding) -> bytes:
    # Clients ask again with other predicates, or none: the same version is all that is promised.
    return pack(Pin.__name__, binding.table_id, binding.location, binding.principal)


def _sort_capabilities(question: QueryRequest | ChangesRequest) -> None:
    """Put what the client can read in order: its headers may name it in any."""
    question.capabilities.response_formats.sort()
    question.capabilities.reader_features.sort()


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)
