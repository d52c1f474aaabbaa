from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from gateway.adapters.vendors import GROUP, VendorNotFound, find_vendor


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


def test_local_vendor_is_installed():
    assert "file" in find_vendor("local").schemes


def test_unknown_vendor_is_answered_with_the_installed_ones_and_the_nearest():
    points = [point("local", "vendors.local:vendor"), point("azure", "vendors.azure:vendor")]

    with pytest.raises(VendorNotFound, match="'lokal' among those installed: azure, local") as raised:
        find_vendor("lokal", points)

    assert raised.value.suggestion == "local"


def test_unknown_vendor_that_is_like_no_other_has_no_suggestion():
    with pytest.raises(VendorNotFound) as raised:
        find_vendor("tape", [point("local", "vendors.local:vendor")])

    assert raised.value.suggestion == ""


def test_missing_package_of_a_vendor_is_named_with_the_extra_that_brings_it(tmp_path, monkeypatch):
    (tmp_path / "strange_vendor.py").write_text("import a_package_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(
        VendorNotFound, match=r"needs a_package_that_nobody_has.*pip install '\.\[strange\]' in a checkout"
    ):
        find_vendor("strange", [point("strange", "strange_vendor:vendor")])


def test_vendor_that_is_not_named_is_not_imported():
    points = [point("local", "vendors.local:vendor"), point("ghost", "ghost_vendor_module:vendor")]

    find_vendor("local", points)

    assert "ghost_vendor_module" not in sys.modules


def test_two_packages_with_a_vendor_of_one_name_are_refused():
    points = [point("local", "vendors.local:vendor"), point("local", "stranger.local:vendor")]

    with pytest.raises(VendorNotFound, match=r"stranger\.local:vendor, vendors\.local:vendor"):
        find_vendor("local", points)


def test_package_that_is_found_twice_is_one_vendor():
    points = [point("local", "vendors.local:vendor")] * 2

    assert find_vendor("local", points) is find_vendor("local")
