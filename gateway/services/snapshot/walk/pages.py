"""Pages of an answer whose files are in an index: what came since first, then block after block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.limit import limited
from gateway.services.snapshot.answer.line import ActionKind, LineFormat
from gateway.services.snapshot.answer.page import render_actions, render_files
from gateway.services.snapshot.answer.rendered import RenderedPages
from gateway.services.snapshot.state.files import Files
from gateway.services.snapshot.walk.walking import Walk, Walked
from gateway.v1.snapshot_pb2 import FilePage


@dataclass(slots=True, kw_only=True)
class WalkedPages:
    walk: Walk
    line: LineFormat
    grant: Grant
    rendered: RenderedPages = field(repr=False)
    # How many files were in the answer so far.
    files: int = 0

    async def render(
        self, newer: Files, kept: pl.Series | None, limit: int | None
    ) -> AsyncGenerator[FilePage]:
        """Render page after page as they are asked for, up to the file whose records reach the limit."""
        async with aclosing(self._parts(Walked(files=newer, kept=kept))) as parts:
            async for walked in parts:
                self.files += walked.count
                pages = self._all(walked)
                if limit is not None:
                    pages, limit = await asyncio.to_thread(self._up_to, walked, limit)
                while (page := await asyncio.to_thread(next, pages, None)) is not None:
                    yield page
                if limit is not None and limit <= 0:
                    return

    async def _parts(self, newer: Walked) -> AsyncGenerator[Walked]:
        yield newer
        async with aclosing(self.walk.walk(self.walk.blocks)) as blocks:
            async for walked in blocks:
                yield walked

    def _all(self, walked: Walked) -> Iterator[FilePage]:
        return render_files(walked.files, self.line, self.grant, kept=walked.kept, rendered=self.rendered)

    def _up_to(self, walked: Walked, limit: int) -> tuple[Iterator[FilePage], int]:
        rows = walked.rows()
        if rows.is_empty() or limit <= 0:
            return iter(()), limit
        rows, limit = limited(rows, limit)
        return render_actions(rows, ActionKind.FILE, self.line, self.grant), limit
