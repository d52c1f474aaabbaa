"""The gateway, as a recipient talks to it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote, urlencode

from sluice_recipient.address import TableName
from sluice_recipient.credential import Credential, parse_credential
from sluice_recipient.delta_listing import DeltaPage, join_delta_pages, parse_delta_page
from sluice_recipient.errors import AccessDenied, NotFound, RecipientError, Refused, Unavailable
from sluice_recipient.listing import Listing, Page, join_pages, parse_page
from sluice_recipient.profile import Profile
from sluice_recipient.refreshing import utcnow
from sluice_recipient.transport import Request, Response, Transport, is_transient, send_patiently

_LONGEST_MESSAGE: Final = 500
# Metadata is asked for to learn where the table is; in which format, and which features it has, does not
# matter for that. Servers that negotiate access modes want them named, others overlook them.
_CAPABILITIES: Final = (
    "responseformat=delta,parquet;readerfeatures=deletionvectors,columnmapping,timestampntz;"
    "accessModes=url,dir"
)
# What a table can be told in without loss is told in the first of the two formats.
_QUERY_CAPABILITIES: Final = (
    "responseformat=parquet,delta;readerfeatures=deletionvectors,columnmapping,timestampntz;"
    "includeendstreamaction=true"
)
_DELTA_CAPABILITIES: Final = (
    "responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz;"
    "includeendstreamaction=true"
)
# So that an answer is never larger than it needs to be.
_FILES_IN_A_PAGE: Final = 10_000
# What a server says when it gives advice of its own.
_OWN_ADVICE: Final = re.compile(r";|\bplease\b|\btry again\b", re.IGNORECASE)

_ERRORS: Final[dict[int, type[RecipientError]]] = {
    401: AccessDenied,
    403: AccessDenied,
    404: NotFound,
    429: Unavailable,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """How a table is shared, and where it lies if that is told."""

    name: TableName
    access_modes: frozenset[str]
    location: str | None = None
    auxiliary_locations: tuple[str, ...] = ()


class Paged(Protocol):
    """An answer that may lead to another."""

    @property
    def next_page_token(self) -> str | None: ...


P = TypeVar("P", bound=Paged)


class GatewayClient:
    """Asks the gateway that a profile names; tries again when it is busy."""

    def __init__(
        self,
        profile: Profile,
        transport: Transport,
        *,
        clock: Callable[[], datetime] = utcnow,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.profile = profile
        self._transport = transport
        self.clock = clock
        self._sleep = sleep

    def describe(self, name: TableName) -> TableInfo:
        """Return how a table is shared."""
        try:
            return self._from_metadata(name)
        except (Refused, Unavailable):
            # Metadata needs the table's log, which may be out of reach just now; the list does not.
            return self._from_list(name)

    def credential(self, name: TableName, location: str | None = None) -> Credential:
        """Return a credential for the table's directory, or for one of its auxiliary locations."""
        body = None if location is None else json.dumps({"location": location}).encode()
        return parse_credential(self._json("POST", f"{name.path}/temporary-table-credentials", body))

    def files(self, name: TableName, *, at: Mapping[str, Any], refresh: Mapping[str, Any]) -> Listing:
        """Return the files of a table ``at`` a version or time, or at the latest.

        ``refresh`` is what is asked about refreshing: pages after the first are not asked it again.
        """

        def ask(question: Mapping[str, Any]) -> Page:
            response = self._query(name, question, _QUERY_CAPABILITIES)
            return parse_page(response.headers, response.body, allows_http=self._allows_http)

        return join_pages(_all_pages(ask, {**at, **refresh}, at), self.clock())

    def delta_lines(self, name: TableName, *, at: Mapping[str, Any]) -> list[str]:
        """Return a table ``at`` a version or time in the delta format, a line for each action."""

        def ask(question: Mapping[str, Any]) -> DeltaPage:
            response = self._query(name, question, _DELTA_CAPABILITIES)
            return parse_delta_page(response.headers, response.body, allows_http=self._allows_http)

        return join_delta_pages(_all_pages(ask, at, at))

    def fetch(self, url: str, first: int, last: int) -> Response:
        """Return a store's answer to a request for some bytes, whatever its status; the token stays here."""
        request = Request(method="GET", url=url, headers={"Range": f"bytes={first}-{last}"})
        return send_patiently(self._transport, request, self._sleep)

    def tables(self) -> Iterator[TableInfo]:
        """Yield all tables that are shared with this recipient."""
        for share in self._items("/shares"):
            path = f"/shares/{quote(str(share['name']), safe='')}/all-tables"
            yield from map(_listed, self._items(path))

    @property
    def _allows_http(self) -> bool:
        # Whoever talks to the gateway in the clear may read files so.
        return self.profile.endpoint.startswith("http://")

    def _query(self, name: TableName, question: Mapping[str, Any], capabilities: str) -> Response:
        return self._send(
            "POST",
            f"{name.path}/query",
            body=json.dumps({**question, "maxFiles": _FILES_IN_A_PAGE}).encode(),
            headers={"delta-sharing-capabilities": capabilities},
        )

    def _from_metadata(self, name: TableName) -> TableInfo:
        response = self._send(
            "GET", f"{name.path}/metadata", headers={"delta-sharing-capabilities": _CAPABILITIES}
        )
        for line in response.body.splitlines():
            action = _parse_json(line)
            if isinstance(found := action.get("metaData"), dict):
                # The delta format has the table's own below it.
                return _info(name, (found.get("deltaMetadata") or {}) | found)
        raise Unavailable("the gateway's answer has no metadata; is the endpoint the right one?")

    def _from_list(self, name: TableName) -> TableInfo:
        schema_path = name.path.rpartition("/")[0]
        for item in self._items(schema_path):
            if str(item.get("name")).casefold() == name.table.casefold():
                return _info(name, item)
        raise NotFound(f"table {name} not found")

    def _items(self, path: str) -> Iterator[dict[str, Any]]:
        token, followed = "", set[str]()
        while True:
            query = f"?{urlencode({'pageToken': token})}" if token else ""
            page = self._json("GET", path + query)
            yield from page.get("items") or ()
            token = page.get("nextPageToken") or ""
            if not token:
                return
            _follow(token, followed)

    def _json(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        return _parse_json(self._send(method, path, body=body).body)

    def _send(
        self, method: str, path: str, *, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        self.profile.check(self.clock())
        own = {"Authorization": f"Bearer {self.profile.bearer_token}", "User-Agent": "sluice-recipient"}
        if body is not None:
            own["Content-Type"] = "application/json"
        request = Request(
            method=method, url=self.profile.endpoint + path, headers=own | (headers or {}), body=body
        )
        return _checked(send_patiently(self._transport, request, self._sleep))


def _all_pages(
    ask: Callable[[Mapping[str, Any]], P], first: Mapping[str, Any], rest: Mapping[str, Any]
) -> list[P]:
    pages, followed = [ask(first)], set[str]()
    while token := pages[-1].next_page_token:
        _follow(token, followed)
        pages.append(ask({**rest, "pageToken": token}))
    return pages


def _follow(token: object, followed: set[str]) -> None:
    """Note a page's token; one that was followed before would lead round in a circle for ever."""
    if str(token) in followed:
        raise Refused("the gateway's pages lead back to one that was read already; ask the provider")
    followed.add(str(token))


def _checked(response: Response) -> Response:
    if response.status == 200:  # noqa: PLR2004
        return response
    error = Unavailable if response.status >= 500 else _ERRORS.get(response.status, Refused)  # noqa: PLR2004
    message = _message_of(response)
    # How to see what there is, no server says of itself.
    is_advised = response.status != 404 and _OWN_ADVICE.search(message)  # noqa: PLR2004
    advice = "" if is_advised else _advice(response.status)
    raise error(f"{message} (HTTP {response.status}){advice}")


def _advice(status: int) -> str:
    return "; try again later" if is_transient(status) else _ADVICE.get(status, "")


_ADVICE: Final = {
    401: "; is the profile still the right one?",
    403: "; ask whoever gave you the profile",
    404: "; `sluice-recipient tables PROFILE` lists what is shared with you, if its endpoint is right",
}


def _message_of(response: Response) -> str:
    try:
        message = json.loads(response.body)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        message = None
    if not isinstance(message, str) or not message:
        return "the gateway refuses"
    return printable(message)[:_LONGEST_MESSAGE]


def printable(text: str) -> str:
    """Return a text that came from elsewhere so that it does no harm to a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def _parse_json(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Unavailable("the gateway's answer is not JSON; is the endpoint the right one?")
    return content


def _listed(item: dict[str, Any]) -> TableInfo:
    name = TableName(share=str(item["share"]), schema=str(item["schema"]), table=str(item["name"]))
    return _info(name, item)


def _info(name: TableName, content: dict[str, Any]) -> TableInfo:
    return TableInfo(
        name=name,
        # A server that says nothing knows nothing but url.
        access_modes=frozenset(content.get("accessModes") or ("url",)),
        location=content.get("location"),
        auxiliary_locations=tuple(content.get("auxiliaryLocations") or ()),
    )
