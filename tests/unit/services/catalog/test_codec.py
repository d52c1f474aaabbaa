from __future__ import annotations

import pytest

from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.table import AccessMode, Schema, Share, Table
from gateway.errors import InvalidArgument
from gateway.services.catalog.codec import (
    audiences_from_proto,
    schema_to_proto,
    share_to_proto,
    table_to_proto,
)
from gateway.v1 import catalog_pb2 as pb


def test_a_share_keeps_all_its_fields():
    share = Share(name="s", id="1", display_name="S", comment="c", properties={"a": "b"})
    assert share_to_proto(share) == pb.Share(
        name="s", id="1", display_name="S", comment="c", properties={"a": "b"}
    )


def test_a_schema_keeps_all_its_fields():
    assert schema_to_proto(Schema(name="m", share="s")) == pb.Schema(name="m", share="s")


def test_a_table_keeps_all_its_fields_and_its_locations_their_spelling():
    table = Table(
        name=TableName("s", "m", "t"),
        id="1",
        share_id="2",
        location=parse_location("s3a://bucket/t/"),
        auxiliary_locations=(parse_location("file:///x"),),
        access_modes=(AccessMode.DIR, AccessMode.URL),
    )
    assert table_to_proto(table) == pb.Table(
        name="t",
        schema="m",
        share="s",
        share_id="2",
        id="1",
        location="s3a://bucket/t",
        auxiliary_locations=["file:///x"],
        access_modes=[pb.ACCESS_MODE_DIR, pb.ACCESS_MODE_URL],
    )


@pytest.mark.parametrize("mode", AccessMode)
def test_every_access_mode_has_a_proto(mode):
    table = Table(
        name=TableName("s", "m", "t"),
        id="1",
        share_id="2",
        location=parse_location("/t"),
        access_modes=(mode,),
    )
    (number,) = table_to_proto(table).access_modes
    assert pb.AccessMode.Name(number) == f"ACCESS_MODE_{mode.name}"


@pytest.mark.parametrize("audience", Audience)
def test_every_audience_has_a_proto(audience):
    assert audiences_from_proto([pb.Audience.Value(f"AUDIENCE_{audience.name}")]) == (audience,)


def test_audiences_keep_their_order():
    wanted = [pb.AUDIENCE_VENDING, pb.AUDIENCE_SNAPSHOT]
    assert audiences_from_proto(wanted) == (Audience.VENDING, Audience.SNAPSHOT)


def test_no_audience_is_refused():
    with pytest.raises(InvalidArgument, match="at least one service"):
        audiences_from_proto([])


def test_a_repeated_audience_is_refused():
    with pytest.raises(InvalidArgument, match="once"):
        audiences_from_proto([pb.AUDIENCE_SNAPSHOT, pb.AUDIENCE_PRESIGN, pb.AUDIENCE_SNAPSHOT])


@pytest.mark.parametrize("number", [0, 99, -1])
def test_an_unknown_audience_among_known_ones_is_refused(number):
    with pytest.raises(InvalidArgument, match=f"audience {number}"):
        audiences_from_proto([pb.AUDIENCE_SNAPSHOT, number])
