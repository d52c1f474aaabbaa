from __future__ import annotations

import pytest

from gateway.bootstrap.worker import Inheritance
from tests.cases import each_case


def test_an_inheritance_is_handed_down_as_an_argument():
    inheritance = Inheritance(http=(5, 6), buckets=7, link=8)

    assert Inheritance.from_argument(inheritance.to_argument()) == inheritance
    assert sorted(inheritance.descriptors) == [5, 6, 7, 8]


@each_case("text", ["", "5", "a,b", "1,2,x", "{}"])
def test_another_argument_is_refused(text):
    with pytest.raises(ValueError, match=r"invalid literal|not enough values"):
        Inheritance.from_argument(text)
