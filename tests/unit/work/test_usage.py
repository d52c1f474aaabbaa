from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.config.schema import UsageConfig
from gateway.domain.job import Job, JobKey, JobKind, JobState
from gateway.domain.location import parse_location
from gateway.errors import InvalidArgument
from gateway.work.places import SparkPlaces
from gateway.work.usage import UsageCraft

KEY = JobKey(kind=JobKind.USAGE)
JOB = Job(key=KEY, sequence=1, state=JobState.RUNNING, requested_at=datetime(2026, 11, 17, tzinfo=UTC))
PLACES = {"landing": "s3://audit/landing", "location": "/data/usage"}


class NoStorages:
    def find(self, location):
        return None


def craft(**usage) -> UsageCraft:
    return UsageCraft(UsageConfig(**usage), SparkPlaces(NoStorages()))


async def test_plan_has_both_places_as_spark_spells_them():
    plan = await craft(**PLACES).plan(JOB)
    assert plan is not None
    assert plan.body == {
        "landing_url": "s3a://audit/landing",
        "location_url": "file:/data/usage",
        "max_files_per_trigger": None,
        "continuous_seconds": None,
    }
    assert plan.locations == (parse_location(PLACES["landing"]), parse_location(PLACES["location"]))


def test_it_is_due_as_often_as_the_configuration_says():
    [scheduled] = craft(**PLACES, every="1h").scheduled()
    assert (scheduled.wanted.key, scheduled.every) == (KEY, timedelta(hours=1))


@pytest.mark.parametrize(
    "usage", [PLACES, {"landing": "/a", "every": "1h"}, {"location": "/a", "every": "1h"}]
)
def test_without_a_schedule_or_places_it_is_never_due(usage):
    assert not craft(**usage).scheduled()


@pytest.mark.parametrize("missing", PLACES)
async def test_place_that_is_not_set_is_named(missing):
    usage = {name: place for name, place in PLACES.items() if name != missing}
    with pytest.raises(InvalidArgument, match=f"set usage.{missing}"):
        await craft(**usage).plan(JOB)
    with pytest.raises(InvalidArgument, match=f"set usage.{missing}"):
        craft(**usage).named("")


def test_it_has_no_name():
    assert [wanted.key for wanted in craft(**PLACES).named("")] == [KEY]
    with pytest.raises(InvalidArgument, match="one job for all"):
        craft(**PLACES).named("sales.eu.orders")
