from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.dev import lanes as runner
from tests.components import BOTO3, SEAWEEDFS, SPARK_WRITER
from tests.lanes import LANES, ON_REQUEST, lane_of
from tests.repository import ROOT


def item(path: str, *marks: pytest.MarkDecorator) -> Any:
    def iter_markers(name: str | None = None) -> Any:
        return (each.mark for each in marks if name in (None, each.mark.name))

    return SimpleNamespace(path=ROOT / "tests" / path, iter_markers=iter_markers)


@pytest.mark.parametrize(
    ("lane", "path", "marks"),
    [
        ("fast", "unit/edge/test_app.py", ()),
        ("fast", "contract/http/test_aws_credentials.py", (pytest.mark.component(BOTO3),)),
        ("components", "unit/edge/test_app.py", (pytest.mark.slow,)),
        (
            "components",
            "contract/test_vendor.py",
            (pytest.mark.integration,),
        ),
        ("components", "contract/test_vendor.py", (pytest.mark.system,)),
        ("components", "integration/test_reload.py", ()),
        ("components", "e2e/test_make_run.py", ()),
        (
            "spark",
            "e2e/test_delta.py",
            (pytest.mark.component(SEAWEEDFS), pytest.mark.component(SPARK_WRITER)),
        ),
        ("fleet", "integration/fleet/test_kill.py", ()),
        ("helm", "integration/helm/test_spark.py", (pytest.mark.component(SPARK_WRITER),)),
        ("deep", "integration/helm/test_x.py", (pytest.mark.deep,)),
        ("release", "e2e/test_delta.py", (pytest.mark.release, pytest.mark.component(SPARK_WRITER))),
    ],
)
def test_lane_of_a_test(lane, path, marks):
    assert lane_of(item(path, *marks)) == lane


def test_every_lane_has_a_stage_a_target_and_a_row_in_the_docs():
    targets = set(re.findall(r"^test-([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| ([a-z]+) \| `make test-", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert set(runner.LANES) == set(LANES)
    assert set(LANES) <= targets
    assert set(rows) == set(LANES)


def test_all_lanes_together_are_test_all_and_test_release():
    makefile = (ROOT / "Makefile").read_text()

    def lanes_of(target: str) -> set[str]:
        found = re.search(rf"^{target}:.*\n\t@.*\$\(lanes\) ([a-z ]+)", makefile, re.MULTILINE)
        assert found is not None
        return set(found.group(1).split())

    assert lanes_of("test-all") | lanes_of("test-release") == set(LANES)
    assert lanes_of("test-release") == ON_REQUEST
    assert lanes_of("test") <= lanes_of("test-all")


def test_lane_in_the_background_and_the_next_have_ports_of_their_own():
    for lane, following in itertools.pairwise(runner.LANES.values()):
        if lane.is_background:
            assert _ports(lane).isdisjoint(_ports(following))


def _ports(lane: runner.Lane) -> set[int]:
    first, last = map(int, lane.ports.split("-"))
    return set(range(first, last + 1))
