"""Reads the files of one table from two servers and compares their rows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from gateway.commands.comparison.answer import FileEntry, TableAnswer
from gateway.commands.comparison.client import SharingClient, SharingError
from gateway.commands.comparison.difference import Finding, Weight
from gateway.commands.comparison.files import counted, pair_files, some
from gateway.commands.comparison.rows import (
    Column,
    RowDigest,
    UnreadableFile,
    columns_of,
    digest_file,
    total,
)

# Told how many files of how many were read.
OnFile = Callable[[str, int, int], None]

_AT_ONCE: Final = 8
_BATCH: Final = 64
# Of a server that went away, the rest is not asked for.
_ENOUGH_ERRORS: Final = 32
_COLUMN_MAPPING: Final = "delta.columnMapping.mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What the files of one server hold, or why a file cannot be read, by id."""

    name: str
    digests: Mapping[str, RowDigest]
    errors: Mapping[str, str]


class ContentComparison:
    """Downloads a few files at a time; each is gone again before the next takes its place."""

    def __init__(self, old: SharingClient, new: SharingClient, on_file: OnFile) -> None:
        self._old = old
        self._new = new
        self._on_file = on_file
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def compare(self, subject: str, old: TableAnswer, new: TableAnswer) -> list[Finding]:
        if reason := _beyond(old) or _beyond(new):
            detail = f"not compared: {reason}"
            return [Finding(weight=Weight.NOTE, subject=subject, what="rows", detail=detail)]
        try:
            columns = columns_of(old.metadata)
        except (ValueError, KeyError, TypeError):
            return [Finding(subject=subject, what="rows", detail="not compared: the schema cannot be read")]
        progress = _Progress(self._on_file, subject, len(old.files) + len(new.files))
        one = await self._read("old", self._old, old.files, columns, progress)
        two = await self._read("new", self._new, new.files, columns, progress)
        findings = [
            Finding(subject=subject, what="rows", detail=_errors(side)) for side in (one, two) if side.errors
        ]
        if not findings and total(one.digests.values()) != total(two.digests.values()):
            findings.append(_row_difference(subject, old.files, new.files, (one, two)))
        return findings

    async def _read(
        self,
        name: str,
        client: SharingClient,
        files: Sequence[FileEntry],
        columns: Sequence[Column],
        progress: _Progress,
    ) -> _Side:
        digests: dict[str, RowDigest] = {}
        errors: dict[str, str] = {}

        async def read(file: FileEntry) -> None:
            try:
                digests[file.id] = await self._digest(client, file, columns)
            except (SharingError, UnreadableFile) as exc:
                errors[file.id] = str(exc)
            progress.advance()

        for start in range(0, len(files), _BATCH):
            if len(errors) >= _ENOUGH_ERRORS:
                break
            await asyncio.gather(*(read(file) for file in files[start : start + _BATCH]))
        return _Side(name=name, digests=digests, errors=errors)

    async def _digest(self, client: SharingClient, file: FileEntry, columns: Sequence[Column]) -> RowDigest:
        async with self._slots:
            target = await asyncio.to_thread(tempfile.NamedTemporaryFile, suffix=".parquet")
            with target:
                size = await client.download(file, cast("BinaryIO", target))
                if file.size is not None and size != file.size:
                    raise UnreadableFile(f"it has {size} bytes, not the {file.size} that are listed")
                await asyncio.to_thread(target.flush)
                path = Path(target.name)
                return await asyncio.to_thread(digest_file, path, columns, file.partition_values)


class _Progress:
    def __init__(self, on_file: OnFile, subject: str, files: int) -> None:
        self._on_file = on_file
        self._subject = subject
        self._files = files
        self._done = 0

    def advance(self) -> None:
        self._done += 1
        self._on_file(self._subject, self._done, self._files)


def _beyond(answer: TableAnswer) -> str:
    """Return what keeps this program from making rows of the files; empty when nothing does."""
    vectors = sum(file.deletion_vector is not None for file in answer.files)
    if vectors:
        return f"{counted(vectors, 'file')} with deletion vectors"
    configuration = answer.metadata.get("configuration")
    if isinstance(configuration, dict) and configuration.get(_COLUMN_MAPPING, "none") != "none":
        return "its columns are mapped"
    return "it has variants" if '"variant"' in str(answer.metadata.get("schemaString")) else ""


def _errors(side: _Side) -> str:
    ids = sorted(side.errors)
    return f"files that cannot be read in {side.name}: {some(ids)}, because {side.errors[ids[0]]}"


def _row_difference(
    subject: str, old: Sequence[FileEntry], new: Sequence[FileEntry], sides: tuple[_Side, _Side]
) -> Finding:
    one, two = sides
    pairs, renamed, _, _ = pair_files(old, new)
    unlike = [here.id for here, there in pairs + renamed if one.digests[here.id] != two.digests[there.id]]
    detail = f"other content in files {some(unlike)}" if unlike else "other content in other files"
    return Finding(
        subject=subject,
        what="rows",
        old=total(one.digests.values()).rows,
        new=total(two.digests.values()).rows,
        detail=detail,
    )
