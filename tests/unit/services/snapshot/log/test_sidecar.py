from __future__ import annotations

import pytest

from gateway.errors import Unsupported
from gateway.services.snapshot.log.sidecar import sidecar_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("016ae953-37a9-438e-8683-9a9a4a79a395.parquet", "016ae953-37a9-438e-8683-9a9a4a79a395.parquet"),
        ("a%20b.parquet", "a b.parquet"),
        ("%C3%BC.parquet", "ü.parquet"),
    ],
)
def test_a_sidecar_is_a_file_in_one_directory(path, name):
    assert sidecar_name("c.json", path) == f"_sidecars/{name}"


@pytest.mark.parametrize(
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
        "s3://lake/t/_delta_log/_sidecars/x.parquet",
        "file:x.parquet",
        "x%00.parquet",
        "x%.parquet",
        "%FF.parquet",
    ],
)
def test_a_sidecar_elsewhere_is_refused_under_the_name_of_its_checkpoint(path):
    with pytest.raises(Unsupported, match=r"damaged: c\.json refers to a sidecar outside of _sidecars"):
        sidecar_name("c.json", path)
