"""Pages of lists that were answered before, as long as the catalog's content stays the same."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from gateway.services.catalog.paging import Page
from gateway.v1 import catalog_pb2 as pb

ListResponse = (
    pb.ListSharesResponse | pb.ListSchemasResponse | pb.ListTablesResponse | pb.ListAllTablesResponse
)

_CAPACITY: Final = 50_000


@dataclass(frozen=True, slots=True)
class ListKey:
    """What an answer depends on: the content, who is asking, and the page that was asked for."""

    generation: str
    principal: str
    page: Page


class ListCache:
    """Keeps answers, the least recently used first out; reached only by who was identified just now.

    Only what was granted is kept, so that what is missing and what is not granted stay alike.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        # In items, as these are what an answer's size comes from.
        self._capacity = capacity
        self._answers: OrderedDict[ListKey, ListResponse] = OrderedDict()
        self._items = 0

    def find(self, key: ListKey) -> ListResponse | None:
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def keep(self, key: ListKey, answer: ListResponse) -> None:
        self._answers[key] = answer
        self._items += _cost(answer)
        while self._items > self._capacity:
            _, dropped = self._answers.popitem(last=False)
            self._items -= _cost(dropped)


def _cost(answer: ListResponse) -> int:
    # An empty page takes room, too.
    return len(answer.items) + 1
