from __future__ import annotations

import polars as pl
import pytest

from gateway.errors import Unsupported
from gateway.services.snapshot.answer.servable import require_servable
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
