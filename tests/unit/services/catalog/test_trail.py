from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.audit import AuditEvent, AuditKind
from gateway.domain.grant import Audience
from gateway.domain.location import parse_location
from gateway.domain.name import TableName
from gateway.domain.principal import Principal, PrincipalKind
from gateway.domain.table import Table
from gateway.errors import (
    GatewayError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from gateway.services.catalog.callers import Asker, Visitor
from gateway.services.catalog.operation import Operation
from gateway.services.catalog.trail import Call, Trail
from tests.fakes.audit import FakeAuditLog
from tests.unit.services.catalog.calls import NOON, FakeClock

TABLE = Table(
    name=TableName("Share", "Schema", "Table"),
    id="table-id",
    share_id="share-id",
    location=parse_location("s3://bucket/t"),
    auxiliary_locations=(parse_location("/x"),),
)
ACME = Principal(name="acme", kind=PrincipalKind.RECIPIENT, shares=frozenset())
ACTOR = Principal(name="lineage", kind=PrincipalKind.SERVICE, shares=frozenset())
BY_ACTOR = Asker(principal=ACME, actor="lineage", edge=False)
BY_EDGE = Asker(principal=ACME, edge=True)
VISITOR = Visitor(local=False, service=ACTOR)
CALL = Call(
    operation=Operation("Resolve", "share", "schema", "table"),
    request_id="r-1",
    remote="ipv4:10.0.0.1:5000",
    started_at=NOON - timedelta(milliseconds=12),
)
EXPIRY = NOON + timedelta(seconds=60)


@pytest.fixture
def audit() -> FakeAuditLog:
    return FakeAuditLog()


@pytest.fixture
def trail(audit) -> Trail:
    return Trail(audit, FakeClock())


async def test_a_grant_is_kept_with_all_that_is_known_of_it(trail, audit):
    audiences = [Audience.SNAPSHOT, Audience.PRESIGN, Audience.VENDING]
    await trail.keep_grant(CALL, BY_ACTOR, TABLE, audiences, EXPIRY)
    (event,) = audit.appended
    assert event == AuditEvent(
        id=event.id,
        at=NOON,
        kind=AuditKind.GRANT,
        operation="catalog.Resolve",
        outcome="ok",
        principal="acme",
        actor="lineage",
        share="Share",
        schema="Schema",
        table="Table",
        table_id="table-id",
        mode="url,dir",
        locations=("s3://bucket/t", "/x"),
        expires_at=EXPIRY,
        request_id="r-1",
        remote="ipv4:10.0.0.1:5000",
        duration_ms=12,
    )
    assert event.id
    assert audit.noted == []


@pytest.mark.parametrize(
    ("audiences", "kind", "mode"),
    [
        ([Audience.SNAPSHOT], AuditKind.REQUEST, ""),
        ([Audience.PRESIGN], AuditKind.GRANT, "url"),
        ([Audience.SNAPSHOT, Audience.VENDING], AuditKind.GRANT, "dir"),
    ],
)
async def test_a_grant_that_opens_no_data_is_a_request(trail, audit, audiences, kind, mode):
    await trail.keep_grant(CALL, BY_ACTOR, TABLE, audiences, EXPIRY)
    assert [(event.kind, event.mode) for event in audit.appended] == [(kind, mode)]


async def test_a_grant_whose_event_cannot_be_kept_is_refused(trail, audit):
    audit.broken = True
    with pytest.raises(Unavailable):
        await trail.keep_grant(CALL, BY_ACTOR, TABLE, [Audience.PRESIGN], EXPIRY)


async def test_an_edge_keeps_its_own_log(trail, audit):
    await trail.keep_grant(CALL, BY_EDGE, TABLE, [Audience.PRESIGN], EXPIRY)
    trail.note_answer(CALL, BY_EDGE)
    trail.note_error(CALL, NotFound("x"), VISITOR, BY_EDGE)
    assert audit == FakeAuditLog()


def test_an_answer_is_noted_without_waiting(trail, audit):
    trail.note_answer(CALL, BY_ACTOR)
    (event,) = audit.noted
    assert (event.kind, event.outcome, event.principal, event.actor) == ("request", "ok", "acme", "lineage")
    assert (event.share, event.schema, event.table) == ("share", "schema", "table")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unauthenticated("x"), AuditKind.DENIAL),
        (PermissionDenied("x"), AuditKind.DENIAL),
        (NotFound("x"), AuditKind.DENIAL),
        (InvalidArgument("x"), AuditKind.REQUEST),
        (Unavailable("x"), AuditKind.REQUEST),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, GatewayError) else None,
)
def test_an_error_is_noted_by_its_code(trail, audit, error, kind):
    trail.note_error(CALL, error, VISITOR, BY_ACTOR)
    (event,) = audit.noted
    assert (event.kind, event.outcome, event.principal) == (kind, error.error_code, "acme")


def test_a_service_that_is_refused_before_it_is_known_whom_it_asks_for_is_named(trail, audit):
    trail.note_error(CALL, PermissionDenied("x"), VISITOR, None)
    trail.note_error(CALL, Unauthenticated("x"), Visitor(local=False), None)
    assert [(event.principal, event.actor) for event in audit.noted] == [("", "lineage"), ("", "")]


def test_names_of_any_length_are_cut(trail, audit):
    call = Call(operation=Operation("GetShare", "x" * 10**6), request_id="", remote="", started_at=NOON)
    trail.note_error(call, NotFound("x"), VISITOR, BY_ACTOR)
    assert len(audit.noted[0].share) < 1100
