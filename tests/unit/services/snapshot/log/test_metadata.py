from __future__ import annotations

import pytest

from gateway.services.snapshot.log.metadata import Metadata
from tests.cases import each_case


def metadata(**configuration: str) -> Metadata:
    return Metadata(id="t", schema_string="{}", configuration=configuration)


@pytest.mark.parametrize(("stated", "mode"), [("none", "none"), ("name", "name"), ("ID", "id")])
def test_the_mode_of_column_mapping_is_told_in_lower_case(stated, mode):
    assert metadata(**{"delta.columnMapping.mode": stated}).column_mapping == mode


def test_columns_are_not_mapped_where_nothing_says_so():
    assert metadata().column_mapping == "none"


@each_case(("stated", "is_on"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_a_property_is_on_where_it_is_true(stated, is_on):
    assert metadata(feature=stated).is_on("feature") is is_on
    assert metadata(other="true").is_on("feature") is False
