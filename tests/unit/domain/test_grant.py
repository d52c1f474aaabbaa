from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.domain.grant import Audience, Grant
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode
from gateway.errors import InvalidArgument, Unsupported
from tests.cases import each_case

OWN = parse_location("s3://bucket/table")
AUXILIARY = parse_location("s3://bucket/clone")


def grant(*modes: AccessMode) -> Grant:
    return Grant(
        principal="acme",
        audience=Audience.PRESIGN,
        table=TableName("share", "schema", "table"),
        table_id="1",
        location=OWN,
        auxiliary_locations=(AUXILIARY,),
        access_modes=modes,
        history_shared=False,
        generation="g",
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )


def test_location_0_is_the_table_s_own_and_the_next_are_the_auxiliary_ones():
    assert grant().location_at(0) is OWN
    assert grant().location_at(1) is AUXILIARY


@each_case("index", [2, 2**32 - 1, -1, -2])
def test_a_location_that_the_grant_does_not_name_is_refused(index):
    with pytest.raises(InvalidArgument, match=f"has no location {index}"):
        grant().location_at(index)


def test_a_mode_that_the_grant_names_is_let_through():
    grant(AccessMode.URL, AccessMode.DIR).require(AccessMode.DIR)


def test_another_mode_is_refused_with_what_there_is_instead():
    with pytest.raises(Unsupported, match=r"share\.schema\.table does not offer dir access, only url"):
        grant(AccessMode.URL).require(AccessMode.DIR)
