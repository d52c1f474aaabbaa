from __future__ import annotations

import pytest
from sluice_recipient.access import check_mode, choose
from sluice_recipient.address import parse_name
from sluice_recipient.client import TableInfo
from sluice_recipient.errors import NotUsable, ProfileError

from tests.cases import each_case

SCHEMES = frozenset({"s3"})
BOTH = {"url", "dir"}


def _info(modes, location="s3://lake/orders", auxiliary=()) -> TableInfo:
    return TableInfo(
        name=parse_name("sales.shop.orders"),
        access_modes=frozenset(modes),
        location=location,
        auxiliary_locations=auxiliary,
    )


@each_case(
    ("mode", "modes", "found"),
    [
        ("auto", BOTH, "dir"),
        ("auto", {"dir"}, "dir"),
        ("auto", {"url"}, "url"),
        ("dir", BOTH, "dir"),
        ("dir", {"dir"}, "dir"),
        ("url", BOTH, "url"),
        ("url", {"url"}, "url"),
    ],
)
def test_the_access_is_what_both_sides_have(mode, modes, found):
    assert choose(mode, _info(modes), "spark", SCHEMES) == found


@pytest.mark.parametrize(("mode", "modes"), [("dir", {"url"}), ("url", {"dir"}), ("auto", set())])
def test_without_a_mode_in_common_the_table_is_not_usable(mode, modes):
    with pytest.raises(NotUsable, match=r"sales\.shop\.orders"):
        choose(mode, _info(modes), "spark", SCHEMES)


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({"location": "gs://lake/orders"}, "spark cannot open gs://"),
        ({"location": None}, "where it lies"),
        ({"auxiliary": ("s3://other/part",)}, "another place"),
    ],
)
def test_what_the_engine_cannot_open_is_read_by_url_or_refused(info, why):
    assert choose("auto", _info(BOTH, **info), "spark", SCHEMES) == "url"
    with pytest.raises(NotUsable, match=why):
        choose("dir", _info(BOTH, **info), "spark", SCHEMES)
    with pytest.raises(NotUsable, match=why):
        choose("auto", _info({"dir"}, **info), "spark", SCHEMES)


def test_a_mode_of_another_name_is_refused():
    with pytest.raises(ProfileError, match="auto, dir, url"):
        check_mode("prefix")
