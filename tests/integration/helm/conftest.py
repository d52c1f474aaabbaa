"""One control plane for all tests of the chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.helm.control_plane import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    # Late: a run of other tests needs neither Go nor its programs.
    from tests.integration.helm.control_plane import running_cluster  # noqa: PLC0415
    from tests.integration.helm.operators import define_kinds  # noqa: PLC0415
    from tests.integration.helm.volumes import add_volumes  # noqa: PLC0415

    with running_cluster(tmp_path_factory.mktemp("kubernetes")) as cluster:
        define_kinds(cluster)
        add_volumes(cluster)
        yield cluster
