"""Compares one table of two servers: its version, metadata, files and, if asked to, its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from gateway.commands.comparison.answer import TableAnswer
from gateway.commands.comparison.client import SharingClient, SharingError
from gateway.commands.comparison.content import ContentComparison
from gateway.commands.comparison.difference import (
    Finding,
    Weight,
    compare_answers,
    compare_heads,
    compare_metadata,
)
from gateway.commands.comparison.files import compare_files
from gateway.domain.name import TableName

T = TypeVar("T")

_ATTEMPTS: Final = 3
_PAUSE: Final = 1.0


class Data(StrEnum):
    """How closely the data of a table is looked at."""

    ROWS = "rows"
    FILES = "files"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The two sides of a comparison."""

    old: SharingClient
    new: SharingClient

    async def ask(
        self, old: Callable[[SharingClient], Awaitable[T]], new: Callable[[SharingClient], Awaitable[T]]
    ) -> tuple[T | SharingError, T | SharingError]:
        """Ask both at once, and return an error as an answer."""
        return await asyncio.gather(_answer(old(self.old)), _answer(new(self.new)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    findings: tuple[Finding, ...]
    # False for a table that neither server has answered for: nothing is known of it.
    is_read: bool = True


class TableComparison:
    def __init__(
        self,
        servers: Servers,
        content: ContentComparison,
        data: Data,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._servers = servers
        self._content = content
        self._data = data
        self._sleep = sleep

    async def compare(self, old: TableName, new: TableName) -> Compared:
        """Return how a table differs; the names are the same but for their case."""
        subject = f"table {old}"
        for _ in range(_ATTEMPTS):
            reading = await self._read(old, new)
            if not reading.moved():
                break
            # A commit came in between: the servers would be blamed for the table's own change.
            await self._sleep(_PAUSE)
        findings = await self._compare(subject, reading)
        if reading.moved():
            detail = "not the same in all answers of one server: the table changes while it is read"
            findings.append(Finding(weight=Weight.NOTE, subject=subject, what="version", detail=detail))
        return Compared(findings=tuple(findings), is_read=reading.is_read())

    async def _read(self, old: TableName, new: TableName) -> _Reading:
        ask = self._servers.ask
        versions = await ask(lambda one: one.get_version(old), lambda two: two.get_version(new))
        metadata = await ask(lambda one: one.get_metadata(old), lambda two: two.get_metadata(new))
        queries = None
        if self._data is not Data.NONE:
            queries = await ask(lambda one: one.query(old), lambda two: two.query(new))
        return _Reading(versions=versions, metadata=metadata, queries=queries)

    async def _compare(self, subject: str, reading: _Reading) -> list[Finding]:
        findings, versions = compare_answers(subject, "version", *reading.versions)
        seen = [versions] if versions else []
        found, metadata = compare_answers(subject, "metadata", *reading.metadata)
        findings += found
        if metadata:
            seen.append((metadata[0].version, metadata[1].version))
            findings += compare_metadata(subject, *metadata)
        if reading.queries is not None:
            found, queries = compare_answers(subject, "query", *reading.queries)
            findings += found
            if queries:
                seen.append((queries[0].version, queries[1].version))
                findings += await self._compare_queries(subject, metadata, queries)
        return [*_version_differences(subject, seen), *findings]

    async def _compare_queries(
        self,
        subject: str,
        metadata: tuple[TableAnswer, TableAnswer] | None,
        queries: tuple[TableAnswer, TableAnswer],
    ) -> list[Finding]:
        old, new = queries
        if old.format != new.format:
            # Ids and actions are others in the other format. Where the metadata had it too, it was said.
            is_said = metadata is not None and metadata[0].format != metadata[1].format
            return [] if is_said else list(compare_metadata(subject, old, new))
        findings = list(compare_files(subject, old.files, new.files))
        if metadata:
            findings += compare_heads(subject, (metadata[0], old), (metadata[1], new))
        else:
            findings += compare_metadata(subject, old, new)
        if self._data is Data.ROWS:
            findings += await self._content.compare(subject, old, new)
        return findings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What both servers said, old before new."""

    versions: tuple[int | SharingError, int | SharingError]
    metadata: tuple[TableAnswer | SharingError, TableAnswer | SharingError]
    queries: tuple[TableAnswer | SharingError, TableAnswer | SharingError] | None

    def is_read(self) -> bool:
        """Tell whether at least one server has answered each call that tells what is in the table."""
        answers = [self.metadata, *([self.queries] if self.queries else [])]
        return not any(all(isinstance(side, SharingError) for side in pair) for pair in answers)

    def moved(self) -> bool:
        """Tell whether one server's answers are of several versions."""
        answers = [self.versions, self.metadata, *([self.queries] if self.queries else [])]
        sides = (
            {_version(pair[side]) for pair in answers if not isinstance(pair[side], SharingError)}
            for side in (0, 1)
        )
        return any(len(versions) > 1 for versions in sides)


async def _answer(call: Awaitable[T]) -> T | SharingError:
    try:
        return await call
    except SharingError as exc:
        return exc


def _version(answer: object) -> object:
    return answer.version if isinstance(answer, TableAnswer) else answer


def _version_differences(subject: str, seen: list[tuple[int, int]]) -> list[Finding]:
    unlike = {pair for pair in seen if pair[0] != pair[1]}
    return [Finding(subject=subject, what="version", old=old, new=new) for old, new in sorted(unlike)]
