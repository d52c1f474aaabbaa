from __future__ import annotations

from pathlib import Path

import pytest

from gateway.adapters.storage_plan import LocalRoots, PlannedStorage, covering_storages, plan_storages
from gateway.config.schema import Config
from gateway.config.value import parse_storage_name
from gateway.domain.location import parse_location
from tests.unit.adapters.storage_configs import config, storage


def test_entries_are_planned_as_they_stand():
    planned = plan_storages(config("s3://a/t", storages=[storage("lake", "s3://a", region="eu")]))

    assert planned == (
        PlannedStorage(
            name="lake",
            prefix=parse_location("s3://a"),
            vendor="fake",
            options={"region": "eu"},
            url_only=False,
        ),
    )


def test_empty_list_of_storages_plans_none():
    assert plan_storages(config("/data/t", storages=[])) == ()


def test_without_storages_each_local_table_is_a_storage_of_its_own():
    planned = plan_storages(config("/data/a", "file:///data/b", "/data/a/", "file:/data/b"))

    assert [storage.prefix.path for storage in planned] == ["data/a", "data/b"]
    assert {storage.vendor for storage in planned} == {"local"}
    assert len({storage.name for storage in planned}) == 2


@pytest.mark.parametrize(
    ("location", "vendor", "prefix"),
    [
        ("s3a://lake/x/t", "aws", "s3://lake"),
        ("abfss://c@account.dfs.core.windows.net/t", "azure", "abfss://c@account.dfs.core.windows.net"),
        ("gs://lake/t", "gcp", "gs://lake"),
    ],
)
def test_without_storages_each_bucket_belongs_to_the_vendor_of_its_scheme(location, vendor, prefix):
    (planned,) = plan_storages(config(location, f"{location}2"))

    assert (planned.vendor, planned.prefix) == (vendor, parse_location(prefix))


def test_without_storages_auxiliary_locations_are_planned_too():
    table = {"location": "/data/a", "auxiliaryLocations": ["/archive/a", "s3://lake/a"]}

    assert [storage.prefix.path for storage in plan_storages(config(table))] == ["data/a", "archive/a", ""]


def test_without_storages_only_urls_are_offered():
    assert [storage.url_only for storage in plan_storages(config("/data/a", "s3://lake/a"))] == [True, True]


def test_names_that_nobody_gave_are_stable_fit_for_a_url_and_tell_no_path():
    (planned,) = plan_storages(config("/data/secret-project"))

    assert planned.name == "default-f444f3e01a307233791d"
    assert parse_storage_name(planned.name) == planned.name
    assert "secret" not in planned.name
    assert planned.name == plan_storages(config("/data/other", "file:///data/secret-project/"))[1].name


def test_roots_are_the_directories_of_local_storages():
    roots = LocalRoots(config(storages=[storage("disk", "file:///data/lake"), storage("cloud", "s3://lake")]))

    assert roots("disk") == Path("/data/lake")
    assert roots("cloud") is None
    assert roots("gone") is None


async def test_roots_follow_a_reload():
    roots = LocalRoots(config(storages=[storage("disk", "/data/lake")]))

    await roots.reload(config(storages=[storage("disk", "/mnt/lake")]))

    assert roots("disk") == Path("/mnt/lake")


def test_entries_that_cover_some_places_are_those_with_the_longest_prefix():
    entries = [
        {"name": "lake", "prefix": "s3://lake", "vendor": "aws"},
        {"name": "state", "prefix": "s3://lake/state", "vendor": "aws"},
        {"name": "landing", "prefix": "s3://landing", "vendor": "aws"},
    ]
    config = Config.model_validate({"storages": entries})

    def names(*places: str) -> list[str]:
        return [entry.name for entry in covering_storages(config, places)]

    assert names("s3://lake/state/a") == ["state"]
    assert names("s3://landing/x", "", "s3://lake/state") == ["state", "landing"]
    assert names("", "/srv/state") == []
    assert covering_storages(Config(), ["s3://lake/a"]) == ()
