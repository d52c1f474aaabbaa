from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from gateway.errors import InvalidArgument, Unsupported
from gateway.services.presign.codec import from_paths
from gateway.services.snapshot.answer.servable import require_servable
from gateway.services.snapshot.log.path import encode_paths
from tests.cases import each_case
from tests.fakes.grants import GRANT
from tests.unit.services.snapshot.answer.pages import files_of

_GOOD = {"path": "a"}
_COVERED = {"path": "s3://archive/orders/b", "encoded": None}
_ELSEWHERE = {"path": "s3://elsewhere/secret", "encoded": None}
_VECTOR = {"storageType": "p", "sizeInBytes": 1, "cardinality": 1}
_COVERED_VECTOR = {"path": "c", "deletionVector": {**_VECTOR, "pathOrInlineDv": "s3://archive/orders/v"}}
_OTHER_VECTOR = {"path": "d", "deletionVector": {**_VECTOR, "pathOrInlineDv": "s3://elsewhere/secret"}}


def test_files_and_vectors_below_the_locations_of_the_grant_are_servable():
    require_servable(files_of(), GRANT)
    require_servable(files_of(_GOOD), GRANT)
    require_servable(files_of(_GOOD, _COVERED, _COVERED_VECTOR), GRANT)


@pytest.mark.parametrize("row", [_ELSEWHERE, _OTHER_VECTOR])
def test_a_file_or_vector_elsewhere_is_refused_before_the_first_line(row):
    with pytest.raises(Unsupported, match="s3://elsewhere") as caught:
        require_servable(files_of(_GOOD, _COVERED, row), GRANT)

    assert "secret" not in caught.value.message


def test_a_vector_elsewhere_is_refused_though_all_files_are_below_the_table():
    with pytest.raises(Unsupported, match="s3://elsewhere"):
        require_servable(files_of(_GOOD, _OTHER_VECTOR), GRANT)


@pytest.mark.parametrize("row", [_ELSEWHERE, _OTHER_VECTOR])
def test_a_file_that_is_not_told_is_not_in_the_way(row):
    require_servable(files_of(_GOOD, row, live=[True, False]), GRANT)
    require_servable(files_of(_GOOD, row), GRANT, pl.Series([True, False]))


_LOG_FILES = [
    "_delta_log/00000000000000000000.json",
    "_Delta_LOG/00000000000000000000.json",
    "below/_delta_log/x",
    "_delta_log",
    "%5Fdelta%5flog/x",
    "_delt%61_log/_last_checkpoint",
]


def row_of(path: str) -> dict[str, Any]:
    """Return a file as a log is read: with the canonical spelling of its path."""
    return {"path": path, "encoded": encode_paths(pl.Series([path]))[0]}


@each_case("path", _LOG_FILES)
@each_case("below", ["", "s3://archive/orders/", "s3://lake/sales/orders/"])
def test_a_file_of_a_log_is_refused_before_the_first_line(path, below):
    with pytest.raises(Unsupported, match="a file of a log"):
        require_servable(files_of(_GOOD, row_of(below + path)), GRANT)


@each_case("path", _LOG_FILES)
def test_a_vector_that_is_a_file_of_a_log_is_refused_before_the_first_line(path):
    vector = {**_VECTOR, "pathOrInlineDv": f"s3://archive/orders/{path}"}

    with pytest.raises(Unsupported, match="a file of a log"):
        require_servable(files_of(_GOOD, {"path": "e", "deletionVector": vector}), GRANT)


@each_case("path", _LOG_FILES)
def test_what_is_refused_here_is_what_is_not_signed(path):
    encoded = row_of(path)["encoded"]

    with pytest.raises(InvalidArgument, match="are not signed"):
        from_paths(encoded.encode())


@each_case("path", ["_delta_logs/a", "a_delta_log/b", "my_delta_log", "x=_delta_log/a", "_delta"])
def test_a_path_that_only_looks_like_the_log_is_servable(path):
    row = row_of(path)

    require_servable(files_of(_GOOD, row), GRANT)
    assert from_paths(row["encoded"].encode())


def test_a_file_of_the_log_that_is_not_told_is_not_in_the_way():
    row = row_of("_delta_log/x")
    require_servable(files_of(_GOOD, row, live=[True, False]), GRANT)
    files = files_of(_GOOD, row)
    require_servable(files, GRANT, pl.Series([True, False]))

    with pytest.raises(Unsupported):
        require_servable(files, GRANT)


def test_a_file_of_the_log_is_found_among_those_that_came_later():
    files = files_of(_GOOD)
    require_servable(files, GRANT)
    grown = replace(
        files,
        frame=pl.concat([files.frame, files_of(row_of("_delta_log/x")).frame]),
        columns=files.columns.grown(),
    )

    for _ in range(2):
        with pytest.raises(Unsupported):
            require_servable(grown, GRANT)
    require_servable(files, GRANT)
