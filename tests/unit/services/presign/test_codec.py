from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.domain.file_path import Paths
from gateway.errors import InvalidArgument
from gateway.ports import Signatures
from gateway.services.presign.codec import MAX_BYTES, MAX_PATHS, from_paths, to_proto
from tests.cases import each_case


def test_paths_are_taken_as_they_travel_and_in_order():
    joined = b"b.parquet\na%20b/c.parquet\nb.parquet"
    assert from_paths(joined) == Paths(joined)
    assert from_paths(joined).split() == [b"b.parquet", b"a%20b/c.parquet", b"b.parquet"]


def test_whether_they_are_a_segment_is_passed_on():
    assert from_paths(b"a.parquet", is_segment=True) == Paths(b"a.parquet", is_segment=True)
    assert not from_paths(b"a.parquet").is_segment


def test_no_bytes_are_no_paths():
    assert len(from_paths(b"")) == 0


@each_case(
    "paths",
    [
        b"\n",
        b"a\n",
        b"\na",
        b"a\n\nb",
        b"/a",
        b"a/../b",
        b"..",
        b"%2E%2E/a",
        b"a%2Fb",
        b"a%00",
        b"a%5Cb",
        b"a=b",
        b"a\r\nb",
        b"\xc3\xa9",
        b"\xff",
        b"s3://lake/a",
    ],
)
def test_page_with_a_path_that_is_not_plain_is_refused(paths):
    with pytest.raises(InvalidArgument):
        from_paths(paths)


@each_case("path", [b"_delta_log/0.json", b"a/_delta_log/0.json", b"_DELTA_LOG/0.json", b"_delta_log"])
def test_files_of_a_log_are_not_signed(path):
    with pytest.raises(InvalidArgument, match="_delta_log"):
        from_paths(b"a.parquet\n" + path)


@pytest.mark.parametrize("path", ["_change_data/cdc-0.parquet", "deletion_vector_1.bin", "a_delta_log/b"])
def test_files_beside_the_log_are_signed(path):
    assert from_paths(path.encode()) == Paths.of([path])


def test_page_has_a_largest_number_of_paths():
    assert len(from_paths(b"\n".join([b"a"] * MAX_PATHS))) == MAX_PATHS
    with pytest.raises(InvalidArgument, match="4,001"):
        from_paths(b"\n".join([b"a"] * (MAX_PATHS + 1)))


def test_page_has_a_largest_size():
    with pytest.raises(InvalidArgument, match="bytes"):
        from_paths(b"a" * (MAX_BYTES + 1))


def test_signatures_become_columns():
    noon = datetime(2025, 6, 1, 12, tzinfo=UTC)
    signatures = Signatures(
        origin="https://h/t/",
        query="sp=r&sig=",
        signatures=b"x\ny",
        expires_at=noon + timedelta(seconds=1.5),
    )

    response = to_proto(signatures)

    assert (response.origin, response.query, response.signatures) == ("https://h/t/", "sp=r&sig=", b"x\ny")
    assert response.expires_at_ms == int(noon.timestamp()) * 1000 + 1500
