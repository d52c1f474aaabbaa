"""Pages of lists: how many items, after which, and whether there are more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from gateway.domain.key import Keys
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.page_token import PageTokens
from gateway.v1 import catalog_pb2 as pb

DEFAULT_SIZE: Final = 500
MAX_SIZE: Final = 1000
# Half of what a gRPC message may hold; shares carry long comments.
MAX_BYTES: Final = 2 * 1024 * 1024

Item = TypeVar("Item")
Message = TypeVar("Message", pb.Share, pb.Schema, pb.Table)
ListRequest = pb.ListSharesRequest | pb.ListSchemasRequest | pb.ListTablesRequest | pb.ListAllTablesRequest


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was asked for."""

    operation: Operation
    # The folded names of the item before it; empty ones for the first page.
    after: tuple[str, ...]
    size: int

    @property
    def limit(self) -> int:
        """Return how many items to look for: one more than are shown tells whether there are more."""
        return self.size + 1


class Pages:
    """Opens the pages that requests ask for, and closes them with a token for the next."""

    def __init__(self, keys: Keys) -> None:
        self._tokens = PageTokens(keys)

    def open(self, operation: Operation, request: ListRequest, first: tuple[str, ...] = ("",)) -> Page:
        wanted = request.max_results if request.HasField("max_results") else DEFAULT_SIZE
        after = self._tokens.decode(operation, request.page_token) if request.page_token else first
        return Page(operation, after, min(wanted, MAX_SIZE))

    def close(
        self,
        page: Page,
        found: Sequence[Item],
        key: Callable[[Item], tuple[str, ...]],
        to_proto: Callable[[Item], Message],
    ) -> tuple[list[Message], str]:
        """Return the items to show, and the token of the next page or an empty string."""
        items = list(_fitting(map(to_proto, found[: page.size])))
        if len(found) <= len(items):
            return items, ""
        after = key(found[len(items) - 1]) if items else page.after
        return items, self._tokens.encode(page.operation, after)


def _fitting(items: Iterable[Message]) -> Iterator[Message]:
    """Return the items up to the largest size of a page, but at least one."""
    size = 0
    for item in items:
        size += item.ByteSize()
        if size > MAX_BYTES and size > item.ByteSize():
            return
        yield item
