from __future__ import annotations

import pytest

from gateway.domain.location import parse_location
from gateway.errors import Unsupported
from gateway.services.snapshot.log.sidecar import sidecar_name
from tests.cases import each_case

_TABLE = parse_location("s3://lake/my table")
_HOME = "s3://lake/my%20table/_delta_log/_sidecars"


@each_case(
    ("path", "name"),
    [
        ("016ae953-37a9-438e-8683-9a9a4a79a395.parquet", "016ae953-37a9-438e-8683-9a9a4a79a395.parquet"),
        ("a%20b.parquet", "a b.parquet"),
        ("%C3%BC.parquet", "ü.parquet"),
        ("_sidecars/a%20b.parquet", "a b.parquet"),
    ],
)
def test_a_sidecar_is_a_file_in_one_directory(path, name):
    assert sidecar_name("c.json", path, _TABLE) == f"_sidecars/{name}"


@each_case(
    ("table", "path"),
    [
        ("s3://lake/my table", f"{_HOME}/a%20b.parquet"),
        ("s3://lake/my table", "s3a://lake/my table/_delta_log/_sidecars/a%20b.parquet"),
        ("/data/t", "file:/data/t/_delta_log/_sidecars/a%20b.parquet"),
        ("/data/t", "/data/t/_delta_log/_sidecars/a%20b.parquet"),
        (
            "abfss://c@account.dfs.core.windows.net/t",
            "abfss://c@account.dfs.core.windows.net/t/_delta_log/_sidecars/a%20b.parquet",
        ),
    ],
)
def test_a_sidecar_may_be_named_by_the_whole_uri_of_its_one_directory(table, path):
    assert sidecar_name("c.json", path, parse_location(table)) == "_sidecars/a b.parquet"


@each_case(
    "path",
    [
        "",
        "..",
        ".",
        "../x.parquet",
        "%2e%2e/x.parquet",
        "a/b.parquet",
        "a%2Fb.parquet",
        "a\\b.parquet",
        "/x.parquet",
        "s3://lake/other/_delta_log/_sidecars/x.parquet",
        "s3://other/my%20table/_delta_log/_sidecars/x.parquet",
        "gs://lake/my%20table/_delta_log/_sidecars/x.parquet",
        "s3://lake/my%20table/_sidecars/x.parquet",
        "s3://lake/my%20table/_delta_log/x.parquet",
        "s3://lake/my%20table/_delta_log/_sidecars/more/x.parquet",
        "s3://lake/my%20table/_delta_log/other/../_sidecars/x.parquet",
        "s3://lake/other/..%2Fmy%20table/_delta_log/_sidecars/x.parquet",
        "s3://lake%2Fmy%20table/_delta_log/_sidecars/x.parquet",
        "s3://lake/my%FFtable/_delta_log/_sidecars/x.parquet",
        f"{_HOME}/",
        f"{_HOME}/..",
        f"{_HOME}/a%2Fb.parquet",
        "_sidecars/..",
        "_sidecars/",
        "_sidecars/more/x.parquet",
        "./_sidecars/x.parquet",
        "/_sidecars/x.parquet",
        "other/_sidecars/x.parquet",
        "_delta_log/_sidecars/x.parquet",
        "/_delta_log/_sidecars/x.parquet",
        "file:x.parquet",
        "x%00.parquet",
        "x%.parquet",
        "%FF.parquet",
    ],
)
def test_a_sidecar_elsewhere_is_refused_under_the_name_of_its_checkpoint(path):
    with pytest.raises(Unsupported, match=r"damaged: c\.json refers to a sidecar outside of _sidecars"):
        sidecar_name("c.json", path, _TABLE)
