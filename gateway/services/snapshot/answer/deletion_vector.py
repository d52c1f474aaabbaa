"""Deletion vectors: which rows of a file are gone, inline or in files that are signed like data files."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.domain.grant import Grant
from gateway.errors import GatewayError
from gateway.services.snapshot.answer.file_id import delta_file_id
from gateway.services.snapshot.answer.locate import locate_absolute
from gateway.services.snapshot.log.fault import faulty
from gateway.services.snapshot.log.path import SCHEME

_INLINE: Final = "i"
_ABSOLUTE: Final = "p"
_RELATIVE: Final = "u"
_KINDS: Final = (_INLINE, _ABSOLUTE, _RELATIVE)

# Five characters stand for four bytes; a UUID is sixteen of those.
_ALPHABET: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS: Final = bytes(_ALPHABET.find(byte) % 256 for byte in range(256))
_UUID_CHARACTERS: Final = 20
_UUID_DIGITS: Final = 32
_MAX_WORD: Final = 2**32 - 1
# What a word may begin with that is larger.
_LARGEST: Final = ["%", "$", "#"]
# A prefix spreads vectors over directories; it is made of letters and digits.
_RELATIVE_FORM: Final = r"^[A-Za-z0-9]*[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{20}$"
_ABSOLUTE_FORM: Final = rf"^(?:/|{SCHEME}:)"
# As much as that of a file: no store has longer names, and storages are sent whole pages of them.
_MAX_PATH: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Those of some rows, in their order."""

    # The numbers of the rows that have one.
    rows: pl.Series = field(repr=False)
    # The columns ``storageType``, ``pathOrInlineDv``, ``offset``, ``sizeInBytes`` and ``cardinality`` of the
    # log, and for those in files ``id``, ``encoded`` and ``location``, which are null for inline ones.
    frame: pl.DataFrame = field(repr=False)


def find_vectors(column: pl.Series, grant: Grant) -> Vectors | None:
    """Return the vectors of a column of descriptors; raise ``Unsupported`` for one that cannot be served."""
    rows = column.struct.field("storageType").is_not_null().arg_true()
    if rows.is_empty():
        return None
    frame = column.gather(rows).struct.unnest()
    _require_sound(frame)
    return Vectors(rows=rows, frame=_located(frame, grant))


def require_vectors(column: pl.Series, grant: Grant) -> None:
    """Raise what ``find_vectors`` would raise, for less work."""
    kinds = column.struct.field("storageType")
    if kinds.null_count() == kinds.len():
        return
    frame = column.filter(kinds.is_not_null()).struct.unnest()
    _require_sound(frame)
    locate_absolute(frame.filter(pl.col("storageType") == _ABSOLUTE)["pathOrInlineDv"], grant)
    decode_relative(frame.filter((pl.col("storageType") == _RELATIVE) & _may_overflow())["pathOrInlineDv"])


def decode_relative(texts: pl.Series) -> list[str]:
    """Return the paths, relative to the table, that descriptors of relative vectors stand for."""
    characters = "".join(text[-_UUID_CHARACTERS:] for text in texts).encode()
    digits = characters.translate(_DIGITS)
    words = [
        (((a * 85 + b) * 85 + c) * 85 + d) * 85 + e
        for a, b, c, d, e in zip(*(digits[place::5] for place in range(5)), strict=True)
    ]
    if max(words, default=0) > _MAX_WORD:
        raise _damaged("has a name that stands for no UUID")
    numbers = struct.pack(f">{len(words)}I", *words).hex()
    return [
        _path(text[:-_UUID_CHARACTERS], numbers[place : place + _UUID_DIGITS])
        for text, place in zip(texts, range(0, len(numbers), _UUID_DIGITS), strict=True)
    ]


def _may_overflow() -> pl.Expr:
    """Tell which names may stand for no UUID: a word of five characters is too large only if it begins so."""
    name = pl.col("pathOrInlineDv").str.tail(_UUID_CHARACTERS)
    starts = (name.str.slice(place, 1) for place in range(0, _UUID_CHARACTERS, 5))
    return pl.any_horizontal(start.is_in(_LARGEST) for start in starts)


def _require_sound(frame: pl.DataFrame) -> None:
    kind, place = pl.col("storageType"), pl.col("pathOrInlineDv")
    sized = pl.all_horizontal(pl.col("sizeInBytes", "cardinality").ge(0).fill_null(value=False))
    sound = {
        "is neither inline nor in a file": kind.is_in(_KINDS) & place.is_not_null(),
        "has no size or no cardinality": sized,
        "has a name that stands for no UUID": (kind != _RELATIVE) | place.str.contains(_RELATIVE_FORM),
        "has too long a path": (kind == _INLINE) | (place.str.len_bytes() <= _MAX_PATH),
        "is at no absolute path": (kind != _ABSOLUTE) | place.str.contains(_ABSOLUTE_FORM),
    }
    found = frame.select(holds.all().alias(reason) for reason, holds in sound.items()).row(0, named=True)
    for reason, holds in found.items():
        if not holds:
            raise _damaged(reason)


def _located(frame: pl.DataFrame, grant: Grant) -> pl.DataFrame:
    """Add where the vectors in files are, and their ids."""
    # Many vectors may be in one file.
    key = ["storageType", "pathOrInlineDv"]
    named = frame.filter(pl.col("storageType") != _INLINE).select(key).unique()
    relative, absolute = (named.filter(pl.col("storageType") == kind) for kind in (_RELATIVE, _ABSOLUTE))
    paths = pl.Series(decode_relative(relative["pathOrInlineDv"]), dtype=pl.String)
    places = locate_absolute(absolute["pathOrInlineDv"], grant)
    found = pl.concat(
        [
            # Letters, digits, hyphens and slashes: they are spelled canonically.
            relative.with_columns(_ids(paths), paths.alias("encoded"), location=pl.lit(0, dtype=pl.UInt32)),
            absolute.with_columns(
                _ids(absolute["pathOrInlineDv"]),
                places.paths.alias("encoded"),
                places.locations.alias("location"),
            ),
        ]
    )
    return frame.join(found, on=key, how="left", maintain_order="left")


def _ids(paths: pl.Series) -> pl.Series:
    return pl.Series("id", [delta_file_id(path.encode()) for path in paths], dtype=pl.String)


def _path(prefix: str, digits: str) -> str:
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f"{prefix}/deletion_vector_{uuid}.bin" if prefix else f"deletion_vector_{uuid}.bin"


def _damaged(reason: str) -> GatewayError:
    return faulty(f"is damaged: a deletion vector {reason}")
