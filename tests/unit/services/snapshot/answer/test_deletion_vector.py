from __future__ import annotations

import hashlib
import uuid

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Unsupported
from gateway.services.snapshot.answer.deletion_vector import decode_relative, find_vectors, require_vectors
from gateway.services.snapshot.log.schema import DELETION_VECTOR
from tests.cases import each_case
from tests.fakes.grants import GRANT

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_SIZES = {"offset": 1, "sizeInBytes": 40, "cardinality": 6}


def z85(content: bytes) -> str:
    """Return bytes as their definition spells them: five digits to the base 85 for each four."""
    text = ""
    for place in range(0, len(content), 4):
        number = int.from_bytes(content[place : place + 4])
        digits = ""
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits = _ALPHABET[digit] + digits
        text += digits
    return text


def column(*vectors):
    return pl.Series(vectors, dtype=DELETION_VECTOR)


def vector(kind, place, **fields):
    return {"storageType": kind, "pathOrInlineDv": place, **_SIZES, **fields}


def test_the_example_of_the_delta_protocol_is_the_file_that_it_says():
    assert decode_relative(pl.Series(["ab^-aqEH.-t@S}K{vb[*k^"])) == [
        "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    ]


@given(st.lists(st.tuples(st.from_regex(r"[A-Za-z0-9]{0,8}", fullmatch=True), st.uuids()), max_size=5))
def test_a_relative_vector_is_in_the_file_that_its_prefix_and_uuid_name(vectors):
    texts = pl.Series([prefix + z85(number.bytes) for prefix, number in vectors], dtype=pl.String)

    assert decode_relative(texts) == [
        f"{prefix}/deletion_vector_{number}.bin".removeprefix("/") for prefix, number in vectors
    ]


def test_vectors_are_found_with_their_rows_places_and_ids():
    number = uuid.UUID(int=7)
    path = f"deletion_vector_{number}.bin"

    found = find_vectors(
        column(
            None,
            vector("u", z85(number.bytes)),
            vector("i", "inline"),
            vector("p", "s3a://archive/orders/x%20y.bin"),
        ),
        GRANT,
    )

    assert found is not None
    assert found.rows.to_list() == [1, 2, 3]
    assert found.frame["encoded"].to_list() == [path, None, "x%20y.bin"]
    assert found.frame["location"].to_list() == [0, None, 1]
    assert found.frame["id"].to_list() == [
        hashlib.sha256(path.encode()).hexdigest(),
        None,
        hashlib.sha256(b"s3a://archive/orders/x%20y.bin").hexdigest(),
    ]


def test_rows_without_a_vector_have_none():
    assert find_vectors(column(None, None), GRANT) is None
    # A checkpoint may hold a descriptor with nothing in it.
    assert find_vectors(column({"storageType": None}), GRANT) is None
    require_vectors(column(None, {"storageType": None}), GRANT)


@each_case(
    ("damaged", "reason"),
    [
        (vector("x", "y"), "neither inline nor in a file"),
        (vector("", "y"), "neither inline nor in a file"),
        (vector("i", None), "neither inline nor in a file"),
        (vector("i", "x", sizeInBytes=None), "no size or no cardinality"),
        (vector("i", "x", cardinality=None), "no size or no cardinality"),
        (vector("i", "x", sizeInBytes=-1), "no size or no cardinality"),
        (vector("u", ""), "stands for no UUID"),
        (vector("u", "0" * 19), "stands for no UUID"),
        (vector("u", "0" * 19 + "~"), "stands for no UUID"),
        (vector("u", "0" * 19 + "é"), "stands for no UUID"),
        (vector("u", "../" + "0" * 20), "stands for no UUID"),
        (vector("u", "a/b" + "0" * 20), "stands for no UUID"),
        (vector("u", "0" * 20 + "\n"), "stands for no UUID"),
        (vector("p", "relative.bin"), "is at no absolute path"),
        (vector("p", "s3://elsewhere/secret.bin"), "s3://elsewhere: .*auxiliaryLocations"),
        (vector("p", "s3://archive/orders/../secret.bin"), "does not plainly name"),
    ],
)
def test_a_vector_that_is_damaged_or_out_of_reach_is_refused(damaged, reason):
    for check in (find_vectors, require_vectors):
        with pytest.raises(Unsupported, match=reason) as caught:
            check(column(vector("i", "good"), damaged), GRANT)
        assert "secret" not in caught.value.message


def test_a_name_that_stands_for_more_than_a_uuid_is_refused():
    with pytest.raises(Unsupported, match="stands for no UUID"):
        find_vectors(column(vector("u", "#" * 20)), GRANT)


@pytest.mark.parametrize(
    "place",
    [("p", "s3://archive/orders/" + "é" * 10_000), ("u", "a" * 20_000 + "ab^-aqEH.-t@S}K{vb[*k^")],
)
def test_a_vector_at_a_path_that_no_store_has_is_refused(place):
    for require in (require_vectors, find_vectors):
        with pytest.raises(Unsupported, match="too long a path"):
            require(column(vector(*place)), GRANT)


def test_a_vector_that_is_not_in_a_file_may_be_long():
    require_vectors(column(vector("i", "a" * 20_000)), GRANT)
