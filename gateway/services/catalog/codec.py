"""Shares, schemas, tables and audiences: domain to proto and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gateway.domain.grant import Audience
from gateway.domain.table import AccessMode, Schema, Share, Table
from gateway.errors import InvalidArgument
from gateway.v1 import catalog_pb2 as pb

_AUDIENCES: Final = {
    pb.AUDIENCE_SNAPSHOT: Audience.SNAPSHOT,
    pb.AUDIENCE_PRESIGN: Audience.PRESIGN,
    pb.AUDIENCE_VENDING: Audience.VENDING,
}
_ACCESS_MODES: Final = {
    AccessMode.URL: pb.ACCESS_MODE_URL,
    AccessMode.DIR: pb.ACCESS_MODE_DIR,
}


def share_to_proto(share: Share) -> pb.Share:
    return pb.Share(
        name=share.name,
        id=share.id,
        display_name=share.display_name,
        comment=share.comment,
        properties=share.properties,
    )


def schema_to_proto(schema: Schema) -> pb.Schema:
    return pb.Schema(name=schema.name, share=schema.share)


def table_to_proto(table: Table) -> pb.Table:
    """Return a table as callers are shown it: one that is nowhere yet has no directory to offer."""
    modes = [mode for mode in table.access_modes if table.is_placed or mode is not AccessMode.DIR]
    return pb.Table(
        name=table.name.table,
        schema=table.name.schema,
        share=table.name.share,
        share_id=table.share_id,
        id=table.id,
        location=table.location.text if table.is_placed else "",
        auxiliary_locations=[location.text for location in table.auxiliary_locations],
        access_modes=[_ACCESS_MODES[mode] for mode in modes],
        r2_credentials=table.r2_credentials,
    )


def audiences_from_proto(audiences: Iterable[pb.Audience.ValueType]) -> tuple[Audience, ...]:
    """Return the services that grants are wanted for; at least one, each of them known and named once."""
    wanted = tuple(audiences)
    if not wanted:
        raise InvalidArgument("name at least one service that the grant is for")
    # One request could otherwise ask for millions of grants.
    if len(set(wanted)) < len(wanted):
        raise InvalidArgument("name each service that the grant is for once")
    if unknown := [number for number in wanted if number not in _AUDIENCES]:
        raise InvalidArgument(f"a grant cannot be made for the audience {unknown[0]}")
    return tuple(_AUDIENCES[number] for number in wanted)
