from __future__ import annotations

import pytest

from gateway.errors import InvalidArgument
from pipeline.jobs.usage import UsagePlan
from pipeline.plan import read_plan

PLACES = {"landing_url": "file:/landing", "location_url": "file:/usage"}


def test_plan_of_the_gateway_is_read():
    given = PLACES | {"max_files_per_trigger": None, "continuous_seconds": 60}
    landing, location = PLACES["landing_url"], PLACES["location_url"]
    expected = UsagePlan(landing_url=landing, location_url=location, continuous_seconds=60)
    assert read_plan(UsagePlan, given) == expected


@pytest.mark.parametrize("missing", PLACES)
def test_plan_without_a_place_is_refused(missing):
    given = {name: place for name, place in PLACES.items() if name != missing}
    with pytest.raises(InvalidArgument, match=f"plan.{missing} is missing"):
        read_plan(UsagePlan, given)
