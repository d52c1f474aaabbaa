"""Where files of a log are: below the table's own location, or below another one that the grant names.

The log is not trusted: an absolute path is served only from a location that the catalog's entry names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gateway.domain import file_path
from gateway.domain.grant import Grant
from gateway.domain.location import Location, parse_location
from gateway.errors import InvalidArgument, Unsupported
from gateway.services.snapshot.log.path import SCHEME, encode_path, encode_paths

# What stands before an absolute path's first slash: nothing, or a scheme and what it is followed by.
_ROOT: Final = rf"^({SCHEME}:(?://[^/?#]*)?)"
_ROOT_PARTS: Final = re.compile(rf"(?P<scheme>{SCHEME}):(?://(?P<authority>[^/?#]*))?")
_BUCKET: Final = re.compile(r"[A-Za-z0-9._-]{1,255}(?:@[a-z0-9.]+\.core\.[a-z0-9.]+)?")
# Some file systems fold case.
_LOG: Final = "_delta_log"
_WITHIN_LOG: Final = rf"(?i)(?:^|/){_LOG}(?:/|$)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """One for each path, in their order."""

    # Percent-encoded, relative to their locations.
    paths: pl.Series = field(repr=False)
    # Which of the grant's locations they are below, 0 being the table's own.
    locations: pl.Series = field(repr=False)


def locate(paths: pl.Series, encoded: pl.Series, grant: Grant) -> Places:
    """Return where paths of the log are, given the canonical spelling of those that are relative."""
    locations = pl.repeat(0, encoded.len(), dtype=pl.UInt32, eager=True)
    if not encoded.has_nulls():
        return Places(paths=encoded, locations=locations)
    odd = encoded.is_null().arg_true()
    found = locate_absolute(paths.gather(odd), grant)
    return Places(
        # A copy: what is scattered into is changed itself.
        paths=encoded.clone().scatter(odd, found.paths),
        locations=locations.scatter(odd, found.locations),
    )


def locate_absolute(paths: pl.Series, grant: Grant) -> Places:
    """Return where absolute paths are; raise ``Unsupported`` when one is in none of the grant's locations.

    Nor is one served that is in the log of such a location.
    """
    roots = paths.str.extract(_ROOT).fill_null("")
    found = pl.repeat(None, paths.len(), dtype=pl.String, eager=True)
    locations = pl.repeat(0, paths.len(), dtype=pl.UInt32, eager=True)
    for text in roots.unique():
        rows = (roots == text).arg_true()
        part = _below(paths.gather(rows).str.strip_prefix(text), _granted(text, grant))
        found.scatter(rows, part["path"])
        locations.scatter(rows, part["location"])
    if found.has_nulls():
        raise _refusal(paths.filter(found.is_null())[0], grant)
    require_data(found)
    return Places(paths=found, locations=locations)


def require_data(encoded: pl.Series) -> None:
    """Raise ``Unsupported`` when a path, in its canonical spelling, is one of a log: no storage signs it."""
    if are_of_log(encoded).any():
        raise Unsupported("the log names a file of a log as one of the table's data")


def are_of_log(encoded: pl.Series) -> pl.Series:
    """Tell which paths, in their canonical spelling, are those of a log's files; null is none of them."""
    # Nearly none has the name in it, and that is sooner told than where it has it.
    found = encoded.str.contains_any([_LOG], ascii_case_insensitive=True).fill_null(value=False)
    return found & encoded.str.contains(_WITHIN_LOG) if found.any() else found


def _granted(root: str, grant: Grant) -> list[tuple[int, Location]]:
    """Return the grant's locations by number that are in a root, the deepest last."""
    # Without a scheme it is the file system of the table, and object stores have no root directory.
    if not root and grant.location.scheme != "file":
        return []
    try:
        within = parse_location(f"{root}/")
    except InvalidArgument:
        return []
    locations = enumerate((grant.location, *grant.auxiliary_locations))
    found = [(number, location) for number, location in locations if within.covers(location)]
    return sorted(found, key=lambda one: (len(one[1].path), -one[0]))


def _below(paths: pl.Series, locations: Sequence[tuple[int, Location]]) -> pl.DataFrame:
    """Return the relative path of each path, and its location's number; null where no location covers it."""
    # One slash is the root's: with a second one the name would begin with it, in some stores.
    below_root = pl.when(paths.str.starts_with("/")).then(paths.str.slice(1)).otherwise(pl.lit(""))
    frame = pl.DataFrame({"whole": encode_paths(pl.select(below_root).to_series())})
    relative, number = pl.lit(None, dtype=pl.String), pl.lit(0, dtype=pl.UInt32)
    for index, location in locations:
        prefix = f"{file_path.encode_path(location.path)}/" if location.path else ""
        covered = pl.col("whole").str.starts_with(prefix)
        relative = pl.when(covered).then(pl.col("whole").str.strip_prefix(prefix)).otherwise(relative)
        number = pl.when(covered).then(pl.lit(index, dtype=pl.UInt32)).otherwise(number)
    return frame.select(relative.alias("path"), number.alias("location"))


def _refusal(path: str, grant: Grant) -> Unsupported:
    """Return why a path is not served, without giving the path away."""
    match = _ROOT_PARTS.match(path)
    below = path[match.end() :] if match else path
    try:
        encode_path(below.removeprefix("/") if match or path.startswith("/") else path)
    except Unsupported as exc:
        return exc
    if match is None:
        where = "on the same store"
    else:
        where = f"in {match['scheme']}://{_bucket(match['authority'] or '')}"
    return Unsupported(
        f"table {grant.table} has files outside of its directory, {where}: they take an entry of its "
        "auxiliaryLocations that covers them"
    )


def _bucket(authority: str) -> str:
    # Only what can be a bucket, or a container and its account: a URI may also carry a password there.
    return authority if _BUCKET.fullmatch(authority) else ""
