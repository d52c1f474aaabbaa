from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.location import parse_location
from gateway.errors import Unsupported
from gateway.services.snapshot.answer.locate import locate, locate_absolute
from gateway.services.snapshot.log.path import encode_paths
from tests.cases import each_case
from tests.fakes.grants import GRANT
from tests.hypothesis_profiles import examples


def grant_of(location: str, *auxiliary: str):
    return replace(
        GRANT,
        location=parse_location(location),
        auxiliary_locations=tuple(parse_location(text) for text in auxiliary),
    )


LOCAL = grant_of("/data/orders", "file:///archive")
AZURE = grant_of("abfss://data@acct.dfs.core.windows.net/orders", "wasbs://old@acct.blob.core.windows.net")
NESTED = grant_of("s3://lake/a/b", "s3://lake/a", "s3://lake/a/b/c", "s3://lake/a")
SPACED = grant_of("s3://lake/my table", "gs://lake")


def place(path: str, grant=GRANT):
    paths = pl.Series([path])
    found = locate(paths, encode_paths(paths), grant)
    return found.locations[0], found.paths[0]


@each_case(
    ("grant", "path", "location", "relative"),
    [
        (GRANT, "p=1/a", 0, "p%3D1/a"),
        (GRANT, "s3://lake/sales/orders/p=1/a", 0, "p%3D1/a"),
        (GRANT, "s3a://lake/sales/orders/p=a%20b/a", 0, "p%3Da%20b/a"),
        (GRANT, "s3n://archive/orders/p=ü/a", 1, "p%3D%C3%BC/a"),
        (GRANT, "S3://archive/orders/a", 1, "a"),
        (LOCAL, "/data/orders/a", 0, "a"),
        (LOCAL, "file:/data/orders/a", 0, "a"),
        (LOCAL, "file:///archive/x/a", 1, "x/a"),
        (LOCAL, "file://localhost/archive/a", 1, "a"),
        (AZURE, "abfss://data@acct.dfs.core.windows.net/orders/a", 0, "a"),
        (AZURE, "wasbs://data@acct.blob.core.windows.net/orders/a", 0, "a"),
        (AZURE, "abfs://old@ACCT.dfs.core.windows.net/x/a", 1, "x/a"),
        (NESTED, "s3://lake/a/b/f", 0, "f"),
        (NESTED, "s3://lake/a/f", 1, "f"),
        (NESTED, "s3://lake/a/b/c/f", 2, "f"),
        (NESTED, "s3://lake/a/bc/f", 1, "bc/f"),
        (SPACED, "s3://lake/my%20table/f", 0, "f"),
        (SPACED, "s3://lake/my table/f", 0, "f"),
        (SPACED, "gs://lake/my%20table/f", 1, "my%20table/f"),
    ],
)
def test_a_file_is_found_below_the_deepest_location_of_the_grant(grant, path, location, relative):
    assert place(path, grant) == (location, relative)


@each_case(
    ("grant", "path", "said", "unsaid"),
    [
        (GRANT, "s3://other-bucket/secret/key.parquet", "in s3://other-bucket:", "secret"),
        (GRANT, "s3://lake/sales/orders2/secret", "in s3://lake:", "secret"),
        (GRANT, "s3://lake/secret", "in s3://lake:", "secret"),
        (GRANT, "gs://archive/orders/secret", "in gs://archive:", "secret"),
        (GRANT, "hdfs://archive/orders/secret", "in hdfs://archive:", "secret"),
        (
            GRANT,
            "abfss://data@acct.dfs.core.windows.net/secret/x",
            "data@acct.dfs.core.windows.net",
            "secret",
        ),
        (GRANT, "s3://user:password@archive/orders/x", "in s3://:", "password"),
        (GRANT, "s3://archive:443/orders/secret", "in s3://:", "secret"),
        (GRANT, "/archive/orders/secret", "on the same store", "secret"),
        (GRANT, "file:/mnt/secret/x", "in file://", "mnt"),
        (LOCAL, "/data/secret", "on the same store", "secret"),
        (LOCAL, "/data/orders2/secret", "on the same store", "secret"),
        (LOCAL, "file://host/archive/secret", "in file://host", "secret"),
    ],
)
def test_a_file_elsewhere_is_refused_with_its_bucket_and_the_missing_entry(grant, path, said, unsaid):
    with pytest.raises(Unsupported, match="auxiliaryLocations") as caught:
        place(path, grant)

    assert said in caught.value.message
    assert unsaid not in caught.value.message
    assert "retail.sales.orders" in caught.value.message


@each_case(
    "path",
    [
        "a/../secret",
        "../secret",
        "%2e%2e/secret",
        "s3://lake/sales/orders/../secret",
        "s3://lake/sales/orders/../../archive/secret",
        "s3://archive/orders/%2e%2e/secret",
        "s3://archive/orders/..%2Fsecret",
        "s3://archive/orders/a%2Fsecret",
        "s3://archive/orders/./secret",
        "s3://archive/orders//secret",
        "s3://archive//orders/secret",
        "s3://archive/orders/a%5Csecret",
        "s3://archive/orders/a\\secret",
        "s3://archive/orders/a%00secret",
        "s3://archive/orders/secret?versionId=1",
        "s3://archive/orders/secret#x",
        "s3://archive/orders/%FFsecret",
        "s3://archive/orders/",
        "s3://archive/orders/secret/",
        "//archive/orders/secret",
        "s3:/archive/../orders/secret",
    ],
)
@each_case("grant", [GRANT, LOCAL])
def test_a_path_that_leaves_its_location_or_means_two_things_is_refused(path, grant):
    with pytest.raises(Unsupported) as caught:
        place(path, grant)

    assert "secret" not in caught.value.message


@each_case("path", ["s3://archive/orders", "s3://archive", "s3://", "s3:", "file:", "file:x"])
def test_a_location_itself_is_no_file(path):
    with pytest.raises(Unsupported):
        place(path)


def test_an_object_store_has_no_root_directory():
    with pytest.raises(Unsupported, match="on the same store"):
        place("/sales/orders/a", grant_of("s3://lake"))


def test_relative_and_absolute_paths_keep_their_order():
    paths = pl.Series(
        ["a", "s3://archive/orders/b", "c", "s3a://lake/sales/orders/d", "s3n://archive/orders/e"]
    )
    encoded = encode_paths(paths)

    found = locate(paths, encoded, GRANT)

    assert found.paths.to_list() == ["a", "b", "c", "d", "e"]
    assert found.locations.to_list() == [0, 1, 0, 0, 1]
    # What was given is as it was.
    assert encoded.to_list() == ["a", None, "c", None, None]


def test_no_paths_are_no_places():
    found = locate_absolute(pl.Series([], dtype=pl.String), GRANT)

    assert (found.paths.to_list(), found.locations.to_list()) == ([], [])


_PIECES = st.sampled_from(
    [
        "s3://",
        "s3a:",
        "file:",
        "lake",
        "archive",
        "/",
        "//",
        "sales",
        "orders",
        "..",
        ".",
        "%2e",
        "%2F",
        "x",
        "?",
    ]
)


@settings(max_examples=examples(3))
@given(st.lists(_PIECES, max_size=9).map("".join) | st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_served_lies_below_a_location_of_the_grant(path):
    try:
        location, relative = place(path)
    except Unsupported:
        return

    assert location in {0, 1}
    assert all(segment not in {"", ".", ".."} for segment in relative.split("/"))
    assert "%2F" not in relative
