from __future__ import annotations

from vendors.local.config import check


def test_no_options_are_fine():
    assert check({}) == []


def test_each_unknown_option_is_named():
    assert check({"region": "eu", "root": "/"}) == [
        "unknown option 'region': a local storage has none",
        "unknown option 'root': a local storage has none",
    ]
