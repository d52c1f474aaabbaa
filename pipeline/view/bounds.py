"""Where a source's log may lead: a log does not decide where we read, the catalog's entry does.

Whoever writes a table writes its log, and Spark follows a path in it with the identity of the whole storage.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gateway.errors import Unsupported
from pipeline.folders import has_folders
from pipeline.view.plan import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A scheme, the root, or a way up. In SQL's own escapes, within raw texts.
_ABSOLUTE: Final = "^([A-Za-z][A-Za-z0-9+.-]*:|/)"
_UP: Final = r"(^|/)\.\.(/|$)"
# What stands before the path of a place.
_ROOT: Final = re.compile(r"[a-z0-9+.-]+:(?://[^/]*)?")
# Of a deletion vector in the table: what comes before the letters of its id is the name of a directory.
_ID_LETTERS: Final = 20
_DIRECTORY: Final = "^[A-Za-z0-9_-]*$"


def require_within(frame: DataFrame, source: SourceTable) -> None:
    """Raise ``Unsupported`` where a version that was opened names a file outside of the source's places."""
    if has_folders(frame.sparkSession):
        # The very snapshot that the frame will read, whatever becomes of the log meanwhile.
        files: Any = _snapshot(frame).allFiles().toDF()
        is_within = f"{is_below('path', source)} AND {_has_near_vector(source)}"
    else:
        # A server does not show its snapshots, but which files the rows come from.
        files = frame.select("_metadata.file_path")
        is_within = is_below("file_path", source)
    if not files.where(f"NOT coalesce({is_within}, false)").limit(1).isEmpty():
        raise Unsupported(
            f"table {source.name} has files outside of its directory: they take an entry of its "
            "auxiliaryLocations that covers them"
        )


def is_plain(path: str) -> str:
    """Return the condition for a path of a log to stay below its table, by its looks alone."""
    texts = (path, _decoded(path))
    return " AND ".join(f"NOT {text} RLIKE r'{_ABSOLUTE}|{_UP}'" for text in texts)


def is_below(path: str, source: SourceTable) -> str:
    """Return the condition for a path of a log to be below the source, or another place of its entry."""
    within = (_is_in(path, _spelled(url)) for url in (source.url, *source.allowed))
    return f"({is_plain(path)} OR NOT {_decoded(path)} RLIKE r'{_UP}' AND ({' OR '.join(within)}))"


def _has_near_vector(source: SourceTable) -> str:
    kind, path = "deletionVector.storageType", "deletionVector.pathOrInlineDv"
    directory = f"left({path}, length({path}) - {_ID_LETTERS})"
    return (
        f"CASE WHEN deletionVector IS NULL OR {kind} = 'i' THEN true "
        f"WHEN {kind} = 'u' THEN {directory} RLIKE '{_DIRECTORY}' "
        f"WHEN {kind} = 'p' THEN {is_below(path, source)} ELSE false END"
    )


def _is_in(path: str, place: str) -> str:
    root = _ROOT.match(place)
    assert root is not None  # noqa: S101 -- it was given one
    given = _one_spelling(path)
    # Of the root as it was given: what is decoded in it could end it sooner than Spark does.
    return (
        f"startswith({given}, {_text(root.group() + '/')}) "
        f"AND startswith({_decoded(given)}, {_text(place + '/')})"
    )


def _spelled(url: str) -> str:
    """Return a place of ours in the one spelling that places are compared in."""
    if not _ROOT.match(url):
        url = f"file:{url}"
    url = re.sub(r"^file:/+", "file:/", url)
    return re.sub(r"^s3n?:", "s3a:", url).rstrip("/")


def _one_spelling(path: str) -> str:
    # Of a path without a scheme Delta's snapshots know which file system it is on.
    local = f"regexp_replace({path}, r'^file:/+', 'file:/')"
    return f"regexp_replace({local}, r'^s3n?:', 's3a:')"


def _decoded(path: str) -> str:
    """Return what a path is when it is followed; NULL, which is no path, for one that is ill encoded."""
    return f"try_url_decode(replace({path}, '+', '%2B'))"


def _text(value: str) -> str:
    # No quote and no backslash: however a session reads those, it is the same text.
    return f"decode(X'{value.encode().hex()}', 'utf-8')"


def _snapshot(frame: DataFrame) -> Any:
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 -- there is no other way to it
    return plan.collectLeaves().head().relation().location().getSnapshot()
