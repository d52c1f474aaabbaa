"""What the snapshot service spells, the presign service signs."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import file_path
from gateway.errors import GatewayError
from gateway.services.presign.codec import from_paths
from gateway.services.snapshot.log.path import encode_path, encode_paths
from tests.cases import each_case

PATHS = [
    "part-0.parquet",
    "date=2021-04-28/part-0.parquet",
    "name=a%20b/part-0.parquet",
    "name=a%2520b/part-0.parquet",
    "name=100%25/é+&'()*,;=@!$~.parquet",
    "_change_data/cdc-0.parquet",
    "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin",
]


@each_case("path", PATHS)
def test_paths_of_a_log_are_accepted_as_they_are_rendered(path):
    assert from_paths(encode_path(path).encode()).split() == [encode_path(path).encode()]


def test_page_of_rendered_paths_is_accepted_whole():
    rendered = encode_paths(pl.Series(PATHS)).to_list()

    assert from_paths("\n".join(rendered).encode()) == file_path.Paths.of(rendered)


@given(path=st.text(alphabet="aé./%2Ee5Cc=+ \\\n\0", max_size=10) | st.text(max_size=8))
def test_whatever_is_rendered_is_spelled_as_it_is_signed(path):
    try:
        rendered = encode_path(path)
    except GatewayError:
        return

    assert file_path.encode_path(file_path.decode_path(rendered)) == rendered
    assert file_path.parse_paths(rendered.encode()).split() == [rendered.encode()]
