"""The small world that the fake services are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import Unauthenticated
from gateway.v1 import catalog_pb2 as catalog

_MODES = {"url": catalog.ACCESS_MODE_URL, "dir": catalog.ACCESS_MODE_DIR}


@dataclass(frozen=True, kw_only=True)
class FakeTable:
    share: str
    schema: str
    name: str
    files: int = 2
    version: int = 7
    access_modes: tuple[str, ...] = ("url",)
    history_shared: bool = False
    auxiliary_locations: tuple[str, ...] = ()
    r2_credentials: bool = False
    start_version: int = 0
    # Whether versions 2 and 3 come with files of changed rows, and version 4 with other metadata.
    change_feed: bool = False
    # Whether the first file has rows deleted by a vector, which only the delta format can tell.
    vectors: bool = False

    @property
    def id(self) -> str:
        return f"id-{self.name}"

    @property
    def location(self) -> str:
        return f"s3://bucket/{self.name}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.share.lower(), self.schema.lower(), self.name.lower()

    def to_proto(self) -> catalog.Table:
        return catalog.Table(
            name=self.name,
            schema=self.schema,
            share=self.share,
            share_id=f"id-{self.share}",
            id=self.id,
            location=self.location,
            auxiliary_locations=self.auxiliary_locations,
            access_modes=[_MODES[mode] for mode in self.access_modes],
            r2_credentials=self.r2_credentials,
        )


@dataclass(frozen=True, kw_only=True)
class FakeRecipient:
    name: str
    token: str
    shares: tuple[str, ...]
    disabled: bool = False
    revoked_at_ms: int = 0


@dataclass(kw_only=True)
class World:
    """What there is, and who may see it."""

    shares: Sequence[catalog.Share]
    tables: Sequence[FakeTable]
    recipients: Sequence[FakeRecipient]
    empty_schemas: Sequence[tuple[str, str]] = ()
    files_per_page: int = 3

    def table(self, share: str, schema: str, name: str) -> FakeTable | None:
        key = share.lower(), schema.lower(), name.lower()
        return next((table for table in self.tables if table.key == key), None)


def make_grant(audience: catalog.Audience.ValueType, table: FakeTable, principal: str) -> str:
    return f"{audience}/{'/'.join(table.key)}/{principal}"


def open_grant(world: World, grant: str, audience: catalog.Audience.ValueType) -> tuple[FakeTable, str]:
    """Return the table and the principal of a grant."""
    presented, _, rest = grant.partition("/")
    key, _, principal = rest.rpartition("/")
    table = world.table(*key.split("/")) if presented == str(audience) else None
    if table is None:
        raise Unauthenticated("the grant is not for this service")
    return table, principal
