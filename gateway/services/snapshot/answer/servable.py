"""Whether every file of a version can be served: told before the first line, rather than in the middle."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from gateway.domain.grant import Grant
from gateway.services.snapshot.answer.deletion_vector import require_vectors
from gateway.services.snapshot.answer.locate import are_of_log, locate_absolute, require_data
from gateway.services.snapshot.log.schema import ENCODED
from gateway.services.snapshot.state.files import Files


def require_servable(files: Files, grant: Grant, kept: pl.Series | None = None) -> None:
    """Raise ``Unsupported`` when a wanted file, or its deletion vector, is where the grant does not reach."""
    frame = files.frame.select("path", ENCODED, "deletionVector")
    vectors = frame["deletionVector"].struct.field("storageType")
    # Nearly all tables have none of these, and that takes no look at their rows.
    if _are_data(files) and not frame[ENCODED].has_nulls() and vectors.null_count() == vectors.len():
        return
    rows = replace(files, frame=frame).rows(0, files.height, kept)
    require_data(rows[ENCODED])
    locate_absolute(rows.filter(pl.col(ENCODED).is_null())["path"], grant)
    require_vectors(rows["deletionVector"], grant)


def _are_data(files: Files) -> bool:
    """Tell whether no row at all names a file of the log; a row is looked at once, whoever asks."""
    known = files.columns.data_rows
    if known < files.height:
        if are_of_log(files.frame[ENCODED].slice(known)).any():
            return False
        files.columns.data_rows = files.height
    return True
