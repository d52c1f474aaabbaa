"""What files of the log say: files added and removed, protocol and metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from gateway.domain.log import SIDECARS, parse_log_name
from gateway.errors import Unsupported
from gateway.services.snapshot.log.beyond import Beyond, beyond
from gateway.services.snapshot.log.bounds import (
    MAX_SIDECARS,
    Allowance,
    Budget,
    find_excess,
    lengths_of,
    may_exceed,
    path_bytes_of,
    text_bytes_of,
    written_bytes_of,
)
from gateway.services.snapshot.log.description import metadata_of, protocol_of
from gateway.services.snapshot.log.fault import damaged
from gateway.services.snapshot.log.footer import Footer
from gateway.services.snapshot.log.lines import LineDecoder, split_lines
from gateway.services.snapshot.log.metadata import Metadata
from gateway.services.snapshot.log.parquet import open_parquet, read_parquet
from gateway.services.snapshot.log.parsed import partition_values_of, stats_of
from gateway.services.snapshot.log.path import encode_paths
from gateway.services.snapshot.log.projection import Wanted, wanted_of
from gateway.services.snapshot.log.protocol import Protocol
from gateway.services.snapshot.log.reconcile import COMMIT, find_live, keys_of
from gateway.services.snapshot.log.schema import (
    ADD,
    DELETION_VECTOR,
    ENCODED,
    FILES,
    METADATA,
    PROTOCOL,
    REMOVED,
    TEXTS,
)
from gateway.services.snapshot.log.thrift import Malformed

NO_FILES: Final = pl.DataFrame(schema=FILES)
NOT_REMOVED: Final = pl.DataFrame(schema=REMOVED)

# What is read of the log, by action; everything else in it is skipped.
_FIELDS: Final[Mapping[str, Mapping[str, pl.DataType]]] = {
    "add": ADD,
    "remove": {"path": pl.String(), "deletionVector": DELETION_VECTOR},
    "protocol": PROTOCOL,
    "metaData": METADATA,
    "sidecar": {"path": pl.String()},
    "checkpointMetadata": {"version": pl.Int64()},
}
_IN_COMMITS: Final = ("add", "remove", "protocol", "metaData")
# A checkpoint's removes are tombstones of files that it does not list.
_IN_CHECKPOINTS: Final = ("add", "protocol", "metaData", "sidecar", "checkpointMetadata")
_COMMIT_LINES: Final = LineDecoder({action: pl.Struct(_FIELDS[action]) for action in _IN_COMMITS})
_CHECKPOINT_LINES: Final = LineDecoder({action: pl.Struct(_FIELDS[action]) for action in _IN_CHECKPOINTS})
_TEXTS_ONLY: Final[Wanted] = {action: wanted_of(_FIELDS[action]) for action in _IN_CHECKPOINTS}
# Typed values, in the types of the table's columns: all of them.
_STATS, _VALUES = "stats_parsed", "partitionValues_parsed"
_NONE: Final = {action: pl.DataFrame(schema=fields) for action, fields in _FIELDS.items()}
# The largest integer that all readers of JSON agree on.
_MAX_SIZE: Final = 2**53 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """The actions of a file of the log, or of several one after the other."""

    # The columns of ``schema.FILES``.
    files: pl.DataFrame
    # The columns of ``schema.REMOVED``.
    removed: pl.DataFrame
    protocol: Protocol | None
    metadata: Metadata | None
    # Files that were added and are not live any more.
    dropped: int = 0
    # A checkpoint's ``stats_parsed``, as it has it, one for each row of ``files``; None where it has none.
    parsed: pl.Series | None = None
    # URIs of the files that hold the adds of a checkpoint, where it does not have them itself.
    sidecars: tuple[str, ...] = ()


def read_commits(commits: Sequence[tuple[str, bytes]]) -> Actions:
    """Return what commits, given by name and content, come to: one, in which an add outlives a remove."""
    try:
        return _guarded(commits[0][0], lambda name: _read_commits(name, [content for _, content in commits]))
    except Unsupported:
        # One of them is damaged: by itself it is found out under its own name.
        for commit in commits if len(commits) > 1 else ():
            read_commits([commit])
        raise


def read_checkpoint(name: str, content: bytes, budget: Budget | None = None) -> Actions:
    """Return what a checkpoint says, or a part or a sidecar of one, all of which have one budget."""
    left = Budget() if budget is None else budget
    return _guarded(name, lambda name: _read_checkpoint(name, content, left))


def _guarded(name: str, read: Callable[[str], Actions]) -> Actions:
    # A panic is how the library meets bytes that it did not expect, and no ``Exception``.
    try:
        return read(name)
    except (PolarsError, PanicException) as exc:
        raise damaged(name, "cannot be parsed") from exc
    except Malformed as exc:
        raise damaged(name, f"cannot be parsed: {exc}") from exc
    except Beyond as exc:
        raise beyond(name, str(exc)) from exc


def require_bounded(name: str, rows: pl.DataFrame, lengths: Sequence[pl.Series] | None = None) -> None:
    """Raise ``Unsupported`` when more is said of files than any answer could hold."""
    excess = find_excess(rows, lengths)
    if excess is not None:
        raise beyond(name, excess)


def files_of(name: str, adds: pl.DataFrame) -> pl.DataFrame:
    """Return added files in the columns of ``schema.FILES``; raise ``Unsupported`` where one is none."""
    if adds.is_empty():
        return NO_FILES
    if adds["path"].has_nulls() or not _are_sizes(adds["size"]):
        raise damaged(name, "adds a file without a path or a size")
    _require_vectors(name, adds["deletionVector"])
    columns = {
        **adds.to_dict(),
        "partitionValues": _filled(adds["partitionValues"]),
        # A struct in each row, whether it is in the log or not, so that all files of a table are alike.
        "deletionVector": adds["deletionVector"].struct.unnest().to_struct(),
        ENCODED: encode_paths(adds["path"]),
    }
    return pl.DataFrame({column: columns[column] for column in FILES})


def _read_commits(name: str, contents: Sequence[bytes]) -> Actions:
    # Many at once, as one at a time costs a millisecond each.
    split = [split_lines(content) for content in contents]
    joined = [line for lines in split for line in lines]
    frame = _COMMIT_LINES.decode(joined)
    if may_exceed(joined):
        require_bounded(name, _given(frame, "add"))
    added, removed = files_of(name, _given(frame, "add")), _removed(name, _given(frame, "remove"))
    files = added
    # Of one commit all files are live that it adds, unless it adds one twice.
    if len(contents) > 1 or added["path"].n_unique() < added.height:
        commit = pl.Series(COMMIT, [n for n, lines in enumerate(split) for _ in lines], dtype=pl.Int64)
        files = find_live(_numbered(added, frame["add"], commit), _numbered(removed, frame["remove"], commit))
    return Actions(
        files=files,
        removed=removed,
        dropped=added.height - files.height,
        protocol=protocol_of(_given(frame, "protocol"), name),
        metadata=metadata_of(name, _given(frame, "metaData")),
    )


def _given(frame: pl.DataFrame, action: str) -> pl.DataFrame:
    """Return the actions of one kind, of which the frame has the fields that are read, and no others."""
    column = frame[action]
    if column.null_count() == column.len():
        return _NONE[action]
    return column.drop_nulls().struct.unnest()


def _numbered(rows: pl.DataFrame, action: pl.Series, commit: pl.Series) -> pl.DataFrame:
    """Return the rows of an action with the number of the commit that each of them is from."""
    return rows.with_columns(commit.filter(action.is_not_null()))


def _read_checkpoint(name: str, content: bytes, budget: Budget) -> Actions:
    allowance = Allowance(budget)
    if name.endswith(".json"):
        return _actions_of(name, _read_json(content, allowance), allowance)
    footer = open_parquet(content, budget)
    _require_files(name, {column.name for column in footer.columns})
    typed = {_STATS, _VALUES} & _members_of_adds(footer)
    try:
        return _actions_of(name, read_parquet(content, footer, _wanted_with(typed), allowance), allowance)
    except (Beyond, PolarsError, PanicException) as exc:
        if not typed:
            raise
        # Without what it has seen, which is large.
        failure = exc.with_traceback(None)
    allowance.give_back()
    return _read_texts(name, content, footer, allowance, failure)


def _read_texts(
    name: str, content: bytes, footer: Footer, allowance: Allowance, failure: BaseException
) -> Actions:
    """Return what a checkpoint says without its typed values, with which it cannot be read.

    They only save work. But without a partition value a file would be in another partition.
    """
    members = _members_of_adds(footer)
    kept = {_VALUES} & members if "partitionValues" not in members else set()
    frame = read_parquet(content, footer, _wanted_with(kept), allowance)
    adds = _unnested(frame, "add")
    if _VALUES in members - kept and not adds.is_empty() and adds["partitionValues"].has_nulls():
        raise failure
    return _actions_of(name, frame, allowance)


def _wanted_with(typed: Collection[str]) -> Wanted:
    return {**_TEXTS_ONLY, "add": {**(_TEXTS_ONLY["add"] or {}), **dict.fromkeys(typed)}}


def _members_of_adds(footer: Footer) -> set[str]:
    return {member.name for column in footer.columns if column.name == "add" for member in column.children}


def _require_files(name: str, columns: Collection[str]) -> None:
    """Refuse a file that says nothing of files, which would make an empty table of a full one."""
    is_sidecar = name.startswith(f"{SIDECARS}/")
    # Adds are in every checkpoint, were there none of them, but for those that may leave them to sidecars.
    known = {"add", "remove"} if is_sidecar else {"add", "sidecar", "checkpointMetadata"}
    if not known.intersection(columns):
        raise damaged(name, f"is not a {'sidecar' if is_sidecar else 'checkpoint'}")


def _actions_of(name: str, frame: pl.DataFrame, allowance: Allowance) -> Actions:
    _check_version(name, rows_of(frame, "checkpointMetadata"), required=name.endswith(".json"))
    sidecars = _sidecars(name, rows_of(frame, "sidecar")["path"])
    protocol, metadata = rows_of(frame, "protocol"), rows_of(frame, "metaData")
    adds = _unnested(frame, "add")
    # It has the rows of all actions: a million of them should not wait for the rest.
    del frame
    allowance.renew()
    parsed = _struct(adds, _STATS)
    completed = _completed(adds, parsed, allowance)
    lengths = lengths_of(completed)
    require_bounded(name, completed, lengths)
    # A text that is in many rows is there once, until something is made of it.
    allowance.reach(text_bytes_of(completed, lengths))
    allowance.budget.take(path_bytes=path_bytes_of(completed))
    return Actions(
        files=files_of(name, completed),
        removed=NOT_REMOVED,
        protocol=protocol_of(protocol, name),
        metadata=metadata_of(name, metadata),
        parsed=parsed,
        sidecars=sidecars,
    )


def _read_json(content: bytes, allowance: Allowance) -> pl.DataFrame:
    lines = split_lines(content)
    allowance.budget.take_rows(len(lines))
    allowance.grant(len(content))
    return _CHECKPOINT_LINES.decode(lines)


def _sidecars(name: str, paths: pl.Series) -> tuple[str, ...]:
    if paths.has_nulls():
        raise damaged(name, "refers to a sidecar without a path")
    # Once each: a name may be there in a million rows.
    known = paths.unique(maintain_order=True)
    if known.len() > MAX_SIDECARS:
        raise beyond(name, f"refers to more than {MAX_SIDECARS} sidecars")
    return tuple(known)


def _check_version(name: str, rows: pl.DataFrame, *, required: bool) -> None:
    """Refuse a V2 checkpoint that is another version's, or that was cut short before it began."""
    if required and rows.height != 1:
        raise damaged(name, "is not a checkpoint")
    stated = parse_log_name(name)
    if stated is not None and any(version != stated.version for version in rows["version"]):
        raise damaged(name, "is of another version")


def rows_of(
    frame: pl.DataFrame, action: str, fields: Mapping[str, pl.DataType] | None = None
) -> pl.DataFrame:
    """Return the actions of one kind, with a column for each field that is read of it."""
    return _conforming(_unnested(frame, action), _FIELDS[action] if fields is None else fields)


def _unnested(frame: pl.DataFrame, action: str) -> pl.DataFrame:
    """Return the actions of one kind, with the fields that they have."""
    if action not in frame.columns or frame[action].null_count() == frame.height:
        return pl.DataFrame()
    if not isinstance(frame.schema[action], pl.Struct):
        raise Malformed(f"{action} is not a struct")
    return frame[action].drop_nulls().struct.unnest()


def _conforming(found: pl.DataFrame, fields: Mapping[str, pl.DataType]) -> pl.DataFrame:
    if found.is_empty():
        return pl.DataFrame(schema=fields)
    return pl.DataFrame(
        [
            _conformed(found[name], dtype)
            if name in found.columns
            else pl.repeat(None, found.height, dtype=dtype, eager=True).alias(name)
            for name, dtype in fields.items()
        ]
    )


def _struct(found: pl.DataFrame, name: str) -> pl.Series | None:
    return found[name] if isinstance(found.schema.get(name), pl.Struct) else None


def _completed(found: pl.DataFrame, stats: pl.Series | None, allowance: Allowance) -> pl.DataFrame:
    """Return adds whose texts are made of typed values, where the checkpoint has nothing but these."""
    adds = _conforming(found, ADD)
    if stats is not None:
        # Whether or not texts are made of them: predicates have their values in each row that they are in.
        allowance.take(written_bytes_of(stats))
        if (adds["stats"].is_null() & stats.is_not_null()).any():
            adds = adds.with_columns(pl.coalesce("stats", stats_of(stats)))
    values = _struct(found, _VALUES)
    if values is not None and (adds["partitionValues"].is_null() & values.is_not_null()).any():
        allowance.take(written_bytes_of(values, with_nulls=True))
        adds = adds.with_columns(pl.coalesce("partitionValues", partition_values_of(values)))
    return adds


def _conformed(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    if not isinstance(dtype, pl.Struct):
        return column.cast(dtype)
    # Of a struct, the members that are read; a checkpoint's has others beside them.
    members = [column.struct.field(member.name).cast(member.dtype) for member in dtype.fields]
    return pl.DataFrame(members).to_struct(column.name)


def _are_sizes(sizes: pl.Series) -> bool:
    low, high = sizes.min(), sizes.max()
    in_range = isinstance(low, int) and isinstance(high, int) and low >= 0 and high <= _MAX_SIZE
    return in_range and not sizes.has_nulls()


def _filled(values: pl.Series) -> pl.Series:
    if not values.has_nulls():
        return values
    return values.to_frame().select(pl.col(values.name).fill_null(pl.lit({}, dtype=TEXTS))).to_series()


def _removed(name: str, removes: pl.DataFrame) -> pl.DataFrame:
    if removes.is_empty():
        return NOT_REMOVED
    if removes["path"].has_nulls():
        raise damaged(name, "removes a file without a path")
    _require_vectors(name, removes["deletionVector"])
    return keys_of(removes)


def _require_vectors(name: str, vectors: pl.Series) -> None:
    members = vectors.struct.unnest()
    kinds, places = members["storageType"], members["pathOrInlineDv"]
    # Without its place it could not be told from none, and deleted rows would come back.
    if kinds.null_count() < kinds.len() and places.filter(kinds.is_not_null()).has_nulls():
        raise damaged(name, "names a deletion vector without saying where it is")
