from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.advertised import find_location, locations_of
from gateway.errors import InvalidArgument
from gateway.v1.catalog_pb2 import Table

TABLE = Table(location="s3://lake/a", auxiliary_locations=["s3://lake/a/b", "gs://other/c"])


def test_the_tables_own_location_comes_first() -> None:
    assert locations_of(TABLE) == ("s3://lake/a", "s3://lake/a/b", "gs://other/c")
    assert find_location(TABLE, None) == 0


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_location_is_found_with_and_without_one_slash_at_its_end(number: int) -> None:
    text = locations_of(TABLE)[number]
    assert find_location(TABLE, text) == find_location(TABLE, f"{text}/") == number


def test_a_location_that_is_advertised_twice_is_the_first() -> None:
    assert find_location(Table(location="s3://a/b", auxiliary_locations=["s3://a/b"]), "s3://a/b") == 0


def test_the_root_of_a_file_system_is_spelled_with_its_slash() -> None:
    assert find_location(Table(location="/"), "/") == 0


@given(
    asked=st.text()
    | st.sampled_from(locations_of(TABLE)).flatmap(
        lambda text: st.tuples(st.text(max_size=3), st.just(text), st.text(max_size=3)).map("".join)
    )
)
def test_whatever_is_not_advertised_is_refused_and_what_is_advertised_is_told(asked: str) -> None:
    if asked.removesuffix("/") in locations_of(TABLE):
        assert locations_of(TABLE)[find_location(TABLE, asked)] == asked.removesuffix("/")
        return
    with pytest.raises(InvalidArgument, match="same as or under this table's configured storage") as caught:
        find_location(TABLE, asked)
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert "s3://lake/a, s3://lake/a/b, gs://other/c" in caught.value.message
