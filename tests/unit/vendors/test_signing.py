from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest

from gateway.adapters.vendors import GROUP, find_vendor


@pytest.mark.parametrize("name", sorted({point.name for point in entry_points(group=GROUP)}))
def test_a_vendor_says_that_it_signs_exactly_when_it_has_a_signer(name):
    (point,) = {point.value: point for point in entry_points(group=GROUP) if point.name == name}.values()

    assert find_vendor(name).signs is (find_spec(f"{point.module}.signer") is not None)
