"""Pages of lists as JSON, rendered once as long as they are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.domain.kept import Kept
from gateway.edge.answer import schema_json, share_json, table_json
from gateway.edge.json import encode_json
from gateway.v1 import catalog_pb2 as pb

ListResponse = (
    pb.ListSharesResponse | pb.ListSchemasResponse | pb.ListTablesResponse | pb.ListAllTablesResponse
)

_CAPACITY: Final = 32 * 1024 * 1024
_ITEM: Final[Mapping[type[ListResponse], Callable[[Any], dict[str, Any]]]] = {
    pb.ListSharesResponse: share_json,
    pb.ListSchemasResponse: schema_json,
    pb.ListTablesResponse: table_json,
    pb.ListAllTablesResponse: table_json,
}


class ListRenderer:
    """Renders pages, and remembers the latest by the bytes that they came as.

    Comparing a page's bytes costs a hundredth of rendering it, and clients ask for the same ones again.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._rendered: Kept[tuple[type[ListResponse], bytes], bytes] = Kept(capacity)

    def render(self, page: ListResponse) -> bytes:
        """Return one line of JSON. At the end there is no token: an empty one makes a client ask forever."""
        key = type(page), page.SerializeToString(deterministic=True)
        rendered = self._rendered.find(key)
        if rendered is None:
            rendered = _render(page)
            self._rendered.keep(key, rendered, len(key[1]) + len(rendered))
        return rendered


def _render(page: ListResponse) -> bytes:
    value: dict[str, Any] = {"items": [_ITEM[type(page)](item) for item in page.items]}
    if page.next_page_token:
        value["nextPageToken"] = page.next_page_token
    return encode_json(value)
