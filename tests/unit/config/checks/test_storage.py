from __future__ import annotations

import pytest

from gateway.config.checks.storage import Coverage
from gateway.config.schema import StorageConfig
from gateway.domain.location import parse_location
from tests.cases import each_case


def entries(*prefixes: str) -> list[StorageConfig]:
    return [
        StorageConfig.model_validate({"name": f"s{number}", "prefix": prefix, "vendor": "v"})
        for number, prefix in enumerate(prefixes)
    ]


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


@each_case(
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
    coverage = Coverage(entries("s3://bucket/a", "gs://whole", "file:///data/", "not a location"))
    assert (coverage.find(parse_location(location)) is not None) is covered


def test_the_longest_prefix_covers_a_location():
    coverage = Coverage(entries("s3://bucket", "s3://bucket/a/b", "s3://bucket/a"))
    assert coverage.find(parse_location("s3a://bucket/a/b/c")) == 1
    assert coverage.find(parse_location("s3://bucket/a/bc")) == 2
    assert coverage.find(parse_location("s3://bucket")) == 0


def storage_with(life: str) -> str:
    return f"storages: [{{name: a, prefix: /a, vendor: local, credentialLife: {life}}}]"


@each_case(
    ("life", "is_fine"),
    [("15m", True), ("36h", True), ("1h", True), ("899s", False), ("36.1h", False), ("7d", False)],
)
def test_credentials_live_from_a_quarter_of_an_hour_to_36_hours(faults_of, life, is_fine):
    assert list(faults_of(storage_with(life))) == ([] if is_fine else ["storages[0].credentialLife"])
    faults = faults_of(f"credentials: {{life: {life}}}")
    assert list(faults) == ([] if is_fine else ["credentials.life"])
    assert is_fine or faults["credentials.life"].message == "must be from 15m to 36h"


@pytest.mark.parametrize(("life", "warned"), [("15m", True), ("1199s", True), ("20m", False), ("1h", False)])
def test_a_life_that_makes_clients_ask_all_the_time_is_warned_of(read_text, life, warned):
    text = f"allowAnonymous: true\ncredentials: {{life: {life}}}\n{storage_with(life)}"
    found = [warning.partition(":")[0] for warning in read_text(text).warnings]
    assert found == (["credentials.life", "storages[0].credentialLife"] if warned else [])


@pytest.mark.parametrize(("life", "found"), [("10m", "10m"), ("48h", "2d"), ("40h", "40h"), ("90s", "90s")])
def test_a_life_that_no_provider_gives_is_shown(faults_of, life, found):
    assert faults_of(storage_with(life))["storages[0].credentialLife"].found == f"'{found}'"
    assert faults_of(f"credentials: {{life: {life}}}")["credentials.life"].found == f"'{found}'"


def test_a_life_that_is_none_is_shown(faults_of):
    assert faults_of(storage_with("1 hour"))["storages[0].credentialLife"].found == "'1 hour'"
