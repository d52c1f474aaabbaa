from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.request_id import request_id_from, traceparent_from
from tests.cases import each_case

VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("presented", ["a", "A.b_c-9", "x" * 128])
def test_a_sane_id_is_kept(presented: str) -> None:
    assert request_id_from(presented) == presented


@each_case("presented", [None, "", "x" * 129, "a b", "a\n", "a\r\nx: y", "é", "a/b", '"', "a;b"])
def test_any_other_id_is_replaced_by_a_new_one(presented: str | None) -> None:
    made = request_id_from(presented)
    assert re.fullmatch(r"[0-9a-f]{32}", made)
    assert made != request_id_from(presented)


@given(st.text())
def test_whatever_is_presented_the_id_is_fit_for_a_header(presented: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", request_id_from(presented))


@pytest.mark.parametrize("presented", [VALID, f"01{VALID[2:]}", f"cc{VALID[2:]}-what-will-be"])
def test_a_valid_traceparent_is_passed_as_it_is(presented: str) -> None:
    assert traceparent_from(presented) == presented


@each_case(
    "presented",
    [
        None,
        "",
        VALID.upper(),
        f"ff{VALID[2:]}",
        f"{VALID}-more",
        VALID[:-1],
        f"{VALID}\n",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
    ],
)
def test_an_invalid_traceparent_is_dropped(presented: str | None) -> None:
    assert traceparent_from(presented) == ""
