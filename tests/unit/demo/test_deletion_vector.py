from __future__ import annotations

import struct
import uuid
import zlib

from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.deletion_vector import inline_vector, to_bitmap, unique_id, vector_file, vector_path

NAME = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


def rows_in(bitmap: bytes) -> set[int]:
    """Read a bitmap by the offsets of its containers."""
    magic, bitmaps, key, cookie, count = struct.unpack_from("<IQIII", bitmap)
    assert (magic, bitmaps, key, cookie) == (1681511377, 1, 0, 12346)
    roaring, found = bitmap[16:], set()
    for number in range(count):
        high, last = struct.unpack_from("<HH", roaring, 8 + 4 * number)
        [offset] = struct.unpack_from("<I", roaring, 8 + 4 * count + 4 * number)
        if last < 4096:
            low = struct.unpack_from(f"<{last + 1}H", roaring, offset)
        else:
            bits = int.from_bytes(roaring[offset : offset + 8192], "little")
            low = tuple(row for row in range(65536) if bits >> row & 1)
        assert len(low) == last + 1
        found |= {high << 16 | row for row in low}
    return found


def test_one_row_is_the_bytes_that_other_writers_make_of_it():
    expected = "d1d339640100000000000000000000003a3000000100000000000000100000000100"

    assert to_bitmap([1]).hex() == expected


@given(st.sets(st.integers(min_value=0, max_value=2**32 - 1), max_size=200))
def test_every_row_is_in_the_bitmap(rows):
    assert rows_in(to_bitmap(rows)) == rows


def test_many_rows_are_bits():
    rows = set(range(0, 10_000, 2)) | {70_000}

    assert rows_in(to_bitmap(rows)) == rows
    assert len(to_bitmap(rows)) < 2 * len(rows)


def test_a_vector_in_the_log_has_no_offset():
    vector = inline_vector([3, 3, 1])

    assert vector == {
        "storageType": "i",
        "pathOrInlineDv": vector["pathOrInlineDv"],
        "sizeInBytes": len(to_bitmap([1, 3])),
        "cardinality": 2,
    }
    assert unique_id(vector) == f"i{vector['pathOrInlineDv']}"


def test_vectors_in_a_file_stand_one_after_the_other():
    content, vectors = vector_file([[0], [1, 2, 3]], NAME)

    assert content[0] == 1
    for vector, rows in zip(vectors, ({0}, {1, 2, 3}), strict=True):
        offset, size = vector["offset"], vector["sizeInBytes"]
        bitmap = content[offset + 4 : offset + 4 + size]
        assert content[offset : offset + 4] == struct.pack(">I", size)
        assert content[offset + 4 + size :][:4] == struct.pack(">I", zlib.crc32(bitmap))
        assert (rows_in(bitmap), vector["cardinality"]) == (rows, len(rows))
    assert len({unique_id(vector) for vector in vectors}) == 2


def test_a_prefix_is_a_directory():
    _, [vector] = vector_file([[0]], NAME, "ab")

    assert vector["pathOrInlineDv"] == "ab^-aqEH.-t@S}K{vb[*k^"
    assert vector_path(NAME, "ab") == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_path(NAME) == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_no_vector_has_no_id():
    assert unique_id(None) is None
