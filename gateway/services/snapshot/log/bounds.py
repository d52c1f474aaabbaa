"""How much a log may hold: a small file can stand for more than any memory, as columns repeat for free."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

import polars as pl

from gateway.services.snapshot.log.beyond import Beyond
from gateway.services.snapshot.log.schema import TEXTS

# Of all files of a checkpoint together.
MAX_ROWS: Final = 20_000_000
# A table has one for some ten thousand files.
MAX_SIDECARS: Final = 10_000
_MAX_PATHS_OF_ALL: Final = 4 * 1024**3
# Of one file of the log.
_MAX_PATHS: Final = 1024**3
# Of one action; a text in it may be six times as long in JSON, and still fits into a page.
_MAX_PATH: Final = 16 * 1024
_MAX_TEXTS: Final = 1024 * 1024
# What a byte that is read of a checkpoint may stand for. Names of files can hardly be told apart by less than
# ten bytes, and what is said of a file beside its name is seldom more than a kilobyte.
_MAX_RATIO: Final = 256
# Beyond that, of all files of a checkpoint together: in a small one much may be alike.
_MAX_SPARE: Final = 64 * 1024 * 1024
# And for each row, of so many at most: of a wide table much is said of each file, and most of it again.
_SPARE_PER_ROW: Final = 16 * 1024
_MAX_ROWS_WITH_SPARE: Final = 16 * 1024
# Whatever it is read of, in all: what twenty million files take.
_MAX_DECODED: Final = 16 * 1024**3
_INLINE: Final = "i"
# What a text of an action takes however short it is, and a value that is written out beside its name.
_BYTES_PER_TEXT: Final = 4
_BYTES_PER_VALUE: Final = 16
_WRAPS: Final = 2**32

# As it goes on from the name of the file with which it is too much.
_TOO_DENSE: Final = (
    f"makes the checkpoint larger than {_MAX_RATIO} times the bytes that are read of it, {_SPARE_PER_ROW} "
    f"for each of up to {_MAX_ROWS_WITH_SPARE} rows and {_MAX_SPARE} more, decoded"
)
_EXCESSES: Final = {
    "rows": f"makes the checkpoint larger than {MAX_ROWS} rows",
    "path_bytes": f"makes the checkpoint larger than {_MAX_PATHS_OF_ALL} bytes of paths",
    "spare": _TOO_DENSE,
    "decoded": f"makes the checkpoint larger than {_MAX_DECODED} bytes, decoded",
}


class Crowded(Exception):
    """A checkpoint comes to more than there is room for where it is read, though to no more than it may."""

    def __init__(self, decoded: int) -> None:
        super().__init__(f"it comes to {decoded} bytes and more, decoded")
        self.decoded = decoded


class Budget:
    """What is left to the files of a checkpoint, which several threads read."""

    def __init__(
        self,
        rows: int = MAX_ROWS,
        path_bytes: int = _MAX_PATHS_OF_ALL,
        spare: int = _MAX_SPARE,
        decoded: int = _MAX_DECODED,
        room: int | None = None,
    ) -> None:
        self._left = {"rows": rows, "path_bytes": path_bytes, "spare": spare, "decoded": decoded}
        self._decoded = decoded
        # For what is decoded; None: for all of it.
        self._room = room
        self._rows_with_spare = _MAX_ROWS_WITH_SPARE
        self._lock = Lock()

    @property
    def spare(self) -> int:
        return self._left["spare"]

    @property
    def decoded(self) -> int:
        return self._left["decoded"]

    def take_rows(self, count: int) -> None:
        """Take rows, which leave some more to spare; raise ``Beyond`` unless there are so many left."""
        with self._lock:
            given = min(count, self._rows_with_spare)
            self._rows_with_spare -= given
        self.take(rows=count, spare=-given * _SPARE_PER_ROW)

    def take(self, **sizes: int) -> None:
        """Take so much of each; raise ``Beyond``, with nothing taken, unless it is left, or ``Crowded``."""
        with self._lock:
            left = {kind: self._left[kind] - size for kind, size in sizes.items()}
            short = [kind for kind, size in left.items() if size < 0]
            if not short:
                self._left.update(left)
            decoded = self._decoded - self._left["decoded"]
        if short:
            raise Beyond(_EXCESSES[short[0]])
        if self._room is not None and decoded > self._room:
            raise Crowded(decoded)


class Allowance:
    """What a file may stand for: so much for each byte that is read of it, and what is left beside that."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._given = 0
        self._left = 0
        self._taken = 0
        self._spare = 0

    def most(self, size: int) -> tuple[int, str]:
        """Return what there would be if so many bytes were read, and what to tell of what is more."""
        dense, decoded = _MAX_RATIO * size + self.budget.spare, self.budget.decoded
        return min((dense, _TOO_DENSE), (decoded, _EXCESSES["decoded"]))

    def grant(self, size: int) -> None:
        """Give what goes with bytes that are read."""
        self._given += _MAX_RATIO * size
        self.renew()

    def renew(self) -> None:
        """Give it again, for what is made of what was decoded."""
        self._left = self._given

    def take(self, size: int) -> None:
        """Raise ``Beyond`` unless there is so much left."""
        spare = max(0, size - self._left)
        self.budget.take(decoded=size, spare=spare)
        self._left = max(0, self._left - size)
        self._taken += size
        self._spare += spare

    def reach(self, size: int) -> None:
        """Take what is not taken yet of so much in all."""
        self.take(max(0, size - self._taken))

    def give_back(self) -> None:
        """Give back all that was taken, once nothing is held any more of what it was taken for."""
        self.budget.take(decoded=-self._taken, spare=-self._spare)
        self._given = self._left = self._taken = self._spare = 0


def may_exceed(lines: Sequence[bytes]) -> bool:
    """Tell whether what lines of JSON say of a file is worth a look: a text is no longer than its line."""
    return max(map(len, lines), default=0) > _MAX_PATH


def path_bytes_of(rows: pl.DataFrame) -> int:
    """Return how long all paths are together."""
    if "path" not in rows.columns or rows.is_empty():
        return 0
    lengths = rows["path"].str.len_bytes()
    # They are added up in the type that they have.
    wraps = rows.height * _number(lengths.max()) >= _WRAPS
    return _number((lengths.cast(pl.UInt64) if wraps else lengths).sum())


def lengths_of(rows: pl.DataFrame) -> list[pl.Series]:
    """Return how long the texts of each file are that go into answers as they are, beside its path."""
    return [length for column in rows.get_columns() for length in _lengths(column)]


def text_bytes_of(files: pl.DataFrame, lengths: Sequence[pl.Series]) -> int:
    """Return how long all texts are together that are said of files, their statistics included."""
    said = [_length_of(files[name]) for name in ("path", "stats") if not files.is_empty()]
    return sum(_number(length.sum()) for length in (*said, *lengths))


def written_bytes_of(typed: pl.Series, *, with_nulls: bool = False) -> int:
    """Return about how long typed values are together when they are written out, with the names they have."""
    if not isinstance(typed.dtype, pl.Struct):
        return _number(_length_of(typed).sum()) if typed.dtype == pl.String else 0
    members = typed.struct.unnest().get_columns()
    written = [member.len() - (0 if with_nulls else member.null_count()) for member in members]
    names = [len(member.name.encode()) + _BYTES_PER_VALUE for member in members]
    named = sum(count * length for count, length in zip(written, names, strict=True))
    return named + sum(map(written_bytes_of, members))


def find_excess(rows: pl.DataFrame, lengths: Sequence[pl.Series] | None = None) -> str | None:
    """Return what is wrong with files that no answer could hold; None if nothing is.

    Their statistics are left out of an answer where these are too long.
    """
    if rows.is_empty():
        return None
    if _number(rows["path"].str.len_bytes().max()) > _MAX_PATH:
        return f"names a file by a path of more than {_MAX_PATH} bytes"
    if _longest_place(rows) > _MAX_PATH:
        return f"places a deletion vector by a path of more than {_MAX_PATH} bytes"
    if path_bytes_of(rows) > _MAX_PATHS:
        return f"names files by more than {_MAX_PATHS} bytes of paths"
    is_long = _has_long(lengths_of(rows) if lengths is None else lengths)
    return f"says more than {_MAX_TEXTS} bytes of one file" if is_long else None


def _longest_place(rows: pl.DataFrame) -> int:
    """Return how long the longest path of a deletion vector is; one that is inline has none."""
    if "deletionVector" not in rows.columns:
        return 0
    vectors = rows["deletionVector"].struct.unnest()
    longest = _number(vectors["pathOrInlineDv"].str.len_bytes().max())
    # In nearly all tables that is all there is to know.
    if longest <= _MAX_PATH:
        return longest
    places = vectors["pathOrInlineDv"].filter(vectors["storageType"].ne_missing(_INLINE))
    return _number(places.str.len_bytes().max())


def _has_long(lengths: Sequence[pl.Series]) -> bool:
    # Not even the longest of each together, in nearly all tables: that takes no look at each row.
    if sum(_number(length.max()) for length in lengths) <= _MAX_TEXTS:
        return False
    together = pl.DataFrame([length.alias(str(n)) for n, length in enumerate(lengths)]).sum_horizontal()
    return _number(together.max()) > _MAX_TEXTS


def _lengths(column: pl.Series) -> list[pl.Series]:
    """Return how long the texts of a column are that go into answers as they are."""
    if column.null_count() == column.len():
        return []
    if column.dtype == TEXTS:
        texts = (column.map.keys(), column.map.values())
        return [
            each.list.eval(_length(pl.element())).list.sum() + each.list.len() * _BYTES_PER_TEXT
            for each in texts
        ]
    if column.name == "clusteringProvider":
        return [_length_of(column)]
    if column.name == "deletionVector":
        members = column.struct.unnest()
        texts_of = [members[name] for name in ("storageType", "pathOrInlineDv")]
        return [_length_of(text) for text in texts_of if text.null_count() < text.len()]
    return []


def _length_of(texts: pl.Series) -> pl.Series:
    return texts.to_frame("").select(_length(pl.col(""))).to_series()


def _length(text: pl.Expr) -> pl.Expr:
    # Wide enough for a sum, too.
    return text.str.len_bytes().cast(pl.UInt64)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
