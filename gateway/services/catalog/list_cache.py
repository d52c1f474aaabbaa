"""Pages of lists that were answered before, as long as the catalog's content stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.domain.kept import Kept
from gateway.domain.principal import Principal
from gateway.services.catalog.paging import Page
from gateway.v1 import catalog_pb2 as pb

ListResponse = (
    pb.ListSharesResponse | pb.ListSchemasResponse | pb.ListTablesResponse | pb.ListAllTablesResponse
)

_CAPACITY: Final = 32 * 1024 * 1024
# Of a key and of an answer without items.
_OVERHEAD: Final = 1024


@dataclass(frozen=True, slots=True)
class ListKey:
    """What an answer depends on: the content, who is asking, and the page that was asked for."""

    generation: str
    # With its shares: an answer never outlives what was granted, whatever the generation.
    principal: Principal
    page: Page


class ListCache:
    """Keeps answers, the least recently used first out; reached only by who was identified just now.

    Only what was granted is kept, so that what is missing and what is not granted stay alike.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        # In bytes: shares carry comments of any length, and a recipient asks for pages of any size.
        self._answers: Kept[ListKey, ListResponse] = Kept(capacity)

    def find(self, key: ListKey) -> ListResponse | None:
        return self._answers.find(key)

    def keep(self, key: ListKey, answer: ListResponse) -> None:
        self._answers.keep(key, answer, answer.ByteSize() + _OVERHEAD)
