"""The changes of a range of versions: all that can go wrong first, then page after page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.features import told_protocol
from gateway.services.snapshot.answer.head import render_metadata, render_protocol
from gateway.services.snapshot.changes.change_format import choose_change_format
from gateway.services.snapshot.changes.commit import Commit
from gateway.services.snapshot.changes.question import ChangeCursor, ChangesAsked, ChangeSource
from gateway.services.snapshot.changes.reading import CommitReader
from gateway.services.snapshot.changes.removed import find_details
from gateway.services.snapshot.changes.rendering import Layout, Rendering
from gateway.services.snapshot.changes.selection import Selection
from gateway.services.snapshot.changes.survey import Survey
from gateway.services.snapshot.changes.table_state import TableState, find_states
from gateway.services.snapshot.log.protocol import Protocol
from gateway.v1 import snapshot_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRules:
    """What is told of a commit, and what the table must have been for it."""

    selection: Selection
    # Takes the states of the range; raises what stands against the answer.
    require: Callable[[Sequence[TableState], ChangesAsked, Grant], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesHead:
    # The version that the changes start with.
    version: int
    # The id that the table has in its metadata there.
    table: str
    response_format: pb.ResponseFormat.ValueType
    # Protocol, then metadata: two lines.
    lines: bytes


class Changes:
    """An answer about changes that nothing but the storage can stop any more."""

    def __init__(
        self, head: ChangesHead, commits: AsyncIterator[Sequence[Commit]], rendering: Rendering
    ) -> None:
        self.head = head
        self._commits = commits
        self._rendering = rendering

    async def pages(self) -> AsyncIterator[pb.FilePage]:
        """Render page after page, once, as they are asked for."""
        async for commits in self._commits:
            pages = self._rendering.pages(commits)
            while (page := await asyncio.to_thread(next, pages, None)) is not None:
                yield page
            if self._rendering.stopped_at is not None:
                return

    @property
    def stopped_at(self) -> ChangeCursor | None:
        """Return, after the last page, where the next answer goes on; None when everything is told."""
        return self._rendering.stopped_at


async def open_changes(source: ChangeSource, asked: ChangesAsked, rules: ChangeRules) -> Changes:
    """Return the answer; raise before its first line what would stop it later."""
    versions = asked.versions
    reader = CommitReader(source.log, source.listing, source.history)
    reader.require(versions)
    start = asked.start or ChangeCursor(version=versions.first, index=0)
    survey = Survey(rules.selection, source.grant, start=start.version)
    await survey.see(reader, versions)
    states = await find_states(source, versions, survey.turns)
    rules.require(states, asked, source.grant)
    told = _Told(states, asked, _choose_format(source, asked, survey, states), survey)
    if survey.fault is not None:
        raise survey.fault
    details = None
    if survey.vague:
        details = await find_details(source, reader, versions, pl.concat(survey.vague))
    layout = Layout(
        selection=rules.selection,
        response_format=told.response_format,
        file_id_hash=asked.file_id_hash,
        first=versions.first,
        with_metadata=asked.with_metadata,
        protocols=told.protocols(),
        details=details,
        grant=source.grant,
    )
    rendering = Rendering(layout, start, asked.max_files)
    return Changes(told.head(source.grant), survey.commits(reader, versions.last), rendering)


def _choose_format(
    source: ChangeSource, asked: ChangesAsked, survey: Survey, states: Sequence[TableState]
) -> pb.ResponseFormat.ValueType:
    return choose_change_format(states, survey.vector, asked.capabilities, source.grant, source.listing)


class _Told:
    """What an answer says of the table itself."""

    def __init__(
        self,
        states: Sequence[TableState],
        asked: ChangesAsked,
        response_format: pb.ResponseFormat.ValueType,
        survey: Survey,
    ) -> None:
        self.response_format = response_format
        self._states = states
        self._asked = asked
        self._turned = {turn.version for turn in survey.turns if turn.protocol is not None}
        self._has_vectors = survey.vector is not None
        self._with_protocol = asked.with_protocol and response_format == pb.RESPONSE_FORMAT_DELTA

    def head(self, grant: Grant) -> ChangesHead:
        first, last = self._states[0], self._states[-1]
        # Who is not told of later ones gets the one that the whole range can be read with.
        protocol = self._protocol(first if self._with_protocol else last)
        metadata = (first if self._asked.with_metadata else last).metadata
        lines = render_protocol(
            protocol, self.response_format, first.version if self._with_protocol else None
        ) + render_metadata(
            metadata,
            grant,
            self.response_format,
            version=first.version if self._asked.with_metadata else None,
        )
        return ChangesHead(
            version=first.version,
            table=first.metadata.id,
            response_format=self.response_format,
            lines=lines,
        )

    def protocols(self) -> dict[int, Protocol]:
        """Return the protocols of later versions by their version, where they are asked for."""
        states = self._states[1:] if self._with_protocol else ()
        return {state.version: self._protocol(state) for state in states if state.version in self._turned}

    def _protocol(self, state: TableState) -> Protocol:
        declared = self._asked.capabilities.reader_features
        return told_protocol(state.protocol, state.metadata, declared, has_vectors=self._has_vectors)
