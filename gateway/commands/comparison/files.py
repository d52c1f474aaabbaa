"""How the files that two servers list for one table differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gateway.commands.comparison.answer import FileEntry
from gateway.commands.comparison.difference import Finding, Weight
from gateway.commands.comparison.values import MISSING, differences, parse_json

_EXAMPLES: Final = 3
_Pair = tuple[FileEntry, FileEntry]


def compare_files(subject: str, old: Sequence[FileEntry], new: Sequence[FileEntry]) -> Iterator[Finding]:
    """Compare the files of a table by their ids, and by their names where the ids differ."""
    for side, files in (("old", old), ("new", new)):
        repeated = [key for key, count in Counter(file.id for file in files).items() if count > 1]
        if repeated:
            yield Finding(subject=subject, what="file.id", detail=f"{some(repeated)} repeated in {side}")
    pairs, renamed, only_old, only_new = pair_files(old, new)
    if renamed:
        first = renamed[0]
        detail = f"{counted(len(renamed), 'file')}, e.g. {first[0].name}"
        yield Finding(subject=subject, what="file.id", old=first[0].id, new=first[1].id, detail=detail)
    for side, files, total in (("old", only_old, len(old)), ("new", only_new, len(new))):
        if files:
            detail = f"{some([file.id for file in files])} of {total} only in {side}"
            yield Finding(subject=subject, what="files", detail=detail)
    yield from _compare_pairs(subject, pairs + renamed)


def pair_files(
    old: Sequence[FileEntry], new: Sequence[FileEntry]
) -> tuple[list[_Pair], list[_Pair], list[FileEntry], list[FileEntry]]:
    """Return files with the same id, with another id but the same name, and those on one side only."""
    olds, news = {file.id: file for file in old}, {file.id: file for file in new}
    pairs = [(file, news[key]) for key, file in olds.items() if key in news]
    only_old = [file for key, file in olds.items() if key not in news]
    only_new = [file for key, file in news.items() if key not in olds]
    names_old, names_new = _unique_names(only_old), _unique_names(only_new)
    renamed = [(file, names_new[name]) for name, file in names_old.items() if name in names_new]
    found = {file.id for pair in renamed for file in pair}
    return (
        pairs,
        renamed,
        [file for file in only_old if file.id not in found],
        [file for file in only_new if file.id not in found],
    )


def some(values: Sequence[str]) -> str:
    """Return how many there are, and the first of them."""
    examples = ", ".join(values[:_EXAMPLES])
    return f"{len(values)} ({examples}{', ...' if len(values) > _EXAMPLES else ''})"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _unique_names(files: Sequence[FileEntry]) -> dict[str, FileEntry]:
    counts = Counter(file.name for file in files)
    return {file.name: file for file in files if file.name and counts[file.name] == 1}


def _compare_pairs(subject: str, pairs: Sequence[_Pair]) -> Iterator[Finding]:
    found: dict[tuple[Weight, str], list[tuple[str, object, object]]] = {}
    for old, new in pairs:
        for weight, what, one, other in _compare_pair(old, new):
            found.setdefault((weight, what), []).append((old.id, one, other))
    for (weight, what), cases in found.items():
        key, one, other = cases[0]
        detail = f"{counted(len(cases), 'file')}, e.g. {key}"
        yield Finding(weight=weight, subject=subject, what=f"file.{what}", old=one, new=other, detail=detail)


def _compare_pair(old: FileEntry, new: FileEntry) -> Iterator[tuple[Weight, str, object, object]]:
    if old.size != new.size:
        yield Weight.DIFFERENCE, "size", old.size, new.size
    yield from _compare_partitions(old.partition_values, new.partition_values)
    if old.stats != new.stats:
        yield from _compare_stats(old.stats, new.stats)
    yield from _compare_deltas(old, new)
    if old.expires != new.expires:
        weight = Weight.ONLY_IN_NEW if new.expires else Weight.DIFFERENCE
        one, other = ("given" if side.expires else MISSING for side in (old, new))
        yield weight, "expirationTimestamp", one, other


def _compare_deltas(old: FileEntry, new: FileEntry) -> Iterator[tuple[Weight, str, object, object]]:
    """Compare what the delta format alone says."""
    if (old.deletion_vector is None) != (new.deletion_vector is None):
        # Rows would come back, or be gone: whichever server it is, that is no addition.
        one, other = (side.deletion_vector or MISSING for side in (old, new))
        yield Weight.DIFFERENCE, "deletionVector", one, other
    else:
        for path, here, there in differences(old.deletion_vector, new.deletion_vector, "deletionVector"):
            yield Weight.DIFFERENCE, path, here, there
    for path, here, there in differences(old.others, new.others, ""):
        weight = Weight.ONLY_IN_NEW if here is MISSING else Weight.DIFFERENCE
        yield weight, path.removeprefix("."), here, there


def _compare_partitions(
    old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[tuple[Weight, str, object, object]]:
    for name in sorted({*old, *new}):
        one, other = old.get(name, MISSING), new.get(name, MISSING)
        if one != other:
            # The protocol writes a null as an empty string, while a log may write it as null.
            alike = (one, other) in ((None, ""), ("", None))
            yield Weight.NOTE if alike else Weight.DIFFERENCE, f"partitionValues.{name}", one, other


def _compare_stats(old: str | None, new: str | None) -> Iterator[tuple[Weight, str, object, object]]:
    if not old or not new:
        weight = Weight.DIFFERENCE if old else Weight.ONLY_IN_NEW
        one, other = ("given" if side else MISSING for side in (old, new))
        if one is not other:
            yield weight, "stats", one, other
        return
    for path, here, there in differences(parse_json(old), parse_json(new), "stats"):
        yield Weight.DIFFERENCE, path, here, there
