"""How many files an answer has whose client asks for pages."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import InvalidArgument
from gateway.v1 import snapshot_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    # The most files of a page, however many a client asks for.
    files: int

    def count_of(self, request: pb.QueryRequest | pb.ChangesRequest) -> int | None:
        """Return how many files a page has; None when the answer is not paged."""
        if not request.HasField("max_files"):
            # Whoever goes on with a page wants pages.
            return self.files if request.page_token else None
        if request.max_files < 1:
            raise InvalidArgument(f"maxFiles must be greater than or equal to 1, not {request.max_files}")
        return min(request.max_files, self.files)
