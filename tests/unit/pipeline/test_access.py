from __future__ import annotations

from pipeline.access import bucket_names


def test_buckets_are_found_in_the_names_of_settings_whatever_dots_they_have():
    names = {
        "fs.s3a.bucket.lake.access.key",
        "fs.s3a.bucket.my.dotted.lake.session.token",
        "fs.s3a.bucket.other.endpoint.region",
        "fs.s3a.bucket.other.endpoint",
        "fs.s3a.endpoint",
        "fs.azure.account.key",
    }
    assert sorted(set(bucket_names(names))) == ["lake", "my.dotted.lake", "other"]
