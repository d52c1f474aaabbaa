from __future__ import annotations

import pytest

from gateway.config.checks.storage import Coverage
from gateway.domain.location import parse_location


def test_names_and_prefixes_are_unique_and_prefixes_parse(faults_of):
    faults = faults_of("""
storages:
- {name: lake, prefix: s3://bucket/a, vendor: aws}
- {name: lake, prefix: s3a://bucket/a/, vendor: aws}
- {name: other, prefix: ftp://x, vendor: aws}
""")
    assert {path: fault.line for path, fault in faults.items()} == {
        "storages[1].name": 5,
        "storages[1].prefix": 5,
        "storages[2].prefix": 6,
    }
    assert "storages[0].prefix already" in faults["storages[1].prefix"].message
    assert "scheme 'ftp' is not supported" in faults["storages[2].prefix"].message


def test_a_password_in_a_prefix_is_not_shown(faults_of):
    faults = faults_of("storages: [{name: a, prefix: 's3://key:hunter2@bucket/', vendor: aws}]")
    assert "storages[0].prefix" in faults
    assert "hunter2" not in str(faults)


@pytest.mark.parametrize(
    ("location", "covered"),
    [
        ("s3://bucket/a", True),
        ("s3a://bucket/a/b/c", True),
        ("s3://bucket/ab", False),
        ("s3://bucket", False),
        ("s3://other/a", False),
        ("gs://whole/x", True),
        ("/data/x", True),
        ("/dat", False),
    ],
)
def test_coverage_ends_at_a_slash(location, covered):
    coverage = Coverage(["s3://bucket/a", "gs://whole", "file:///data/", "not a location"])
    assert coverage.covers(parse_location(location)) is covered
