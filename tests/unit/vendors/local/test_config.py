from __future__ import annotations

from tests.unit.vendors.words import told
from vendors.local.config import check


def test_no_options_are_fine():
    assert check({}) == []


def test_each_unknown_option_is_named():
    assert told(check({"region": "eu", "root": "/"})) == [
        "region: unknown option: a local storage has none",
        "root: unknown option: a local storage has none",
    ]
