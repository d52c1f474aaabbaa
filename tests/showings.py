"""Views and what they show, made up for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.domain.location import parse_location
from gateway.domain.manifest import Manifest, SourceVersion, manifest_key
from gateway.domain.name import TableName
from gateway.domain.principal import Principal, PrincipalKind
from gateway.domain.table import AccessMode, Table
from gateway.domain.view import Showing, Source, View
from tests.fakes.state_store import FakeStateStore

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
NAME = TableName("s", "d", "view")
ROOT = parse_location("s3://lake/views/view")


def make_view(*properties: str, max_staleness: timedelta | None = timedelta(hours=1)) -> View:
    return View(
        query="SELECT 1",
        sources=(Source(name=TableName("s", "d", "t"), location=parse_location("s3://lake/t")),),
        properties=properties,
        is_appendable=True,
        root=ROOT,
        max_staleness=max_staleness,
    )


def make_table(view: View) -> Table:
    return Table(
        name=NAME,
        id="id",
        share_id="share",
        location=view.root,
        access_modes=(AccessMode.URL, AccessMode.DIR),
        view=view,
        holds_shown_only=True,
    )


def recipient(name: str, **properties: str) -> Principal:
    return Principal(
        name=name,
        kind=PrincipalKind.RECIPIENT,
        shares=frozenset({"s"}),
        properties=tuple(sorted(properties.items())),
    )


def make_showing(view: View | None = None, who: str = "") -> Showing:
    return Showing(view=view or make_view(), name=NAME, recipient=who)


def manifest_of(showing: Showing, name: str = "first", at: datetime = NOON) -> Manifest:
    return Manifest(
        fingerprint=showing.fingerprint,
        view=str(showing.name),
        recipient=showing.recipient,
        name=name,
        version=3,
        sources={"s.d.t": SourceVersion(version=7, id="t-id")},
        refreshed_at=at,
    )


def keep(state: FakeStateStore, manifest: Manifest) -> None:
    """Put a manifest where it is looked for."""
    state.entries[manifest_key(manifest.fingerprint)] = manifest.encode(), NOON


def renamed(showing: Showing, name: TableName) -> Showing:
    return replace(showing, name=name)
