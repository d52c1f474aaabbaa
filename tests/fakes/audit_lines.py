"""Audit events as lines, as gateways have written them: whole stories of requests, and lines gone wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from gateway.adapters.audit_log import to_line
from gateway.domain.audit import AuditEvent, AuditKind

START = datetime(2026, 11, 16, 6, tzinfo=UTC)
MALFORMED = {
    b"": "not_json",
    b"not json": "not_json",
    b"[]": "not_json",
    b"7": "not_json",
    b'{"schema_version":1': "not_json",
    b'{"schema_version":1,"id":"a"} {"id":"b"}': "not_json",
    b'{"schema_version":NaN,"id":"a"}': "not_json",
    b"\xff\xfe{}": "not_utf8",
    b'{"id":"a","at":"2026-11-16T00:00:00Z"}': "missing_schema_version",
    b'{"schema_version":2,"id":"a","at":"2026-11-16T00:00:00Z"}': "unknown_schema_version",
    b'{"schema_version":1,"at":"2026-11-16T00:00:00Z"}': "missing_id",
    b'{"schema_version":1,"id":"","at":"2026-11-16T00:00:00Z"}': "missing_id",
    b'{"schema_version":1,"id":"a"}': "missing_time",
    b'{"schema_version":1,"id":"a","at":"2026-13-45T00:00:00Z"}': "missing_time",
    b'{"schema_version":1,"id":"a","at":"1970-01-01T00:00:00Z"}': "missing_time",
    b'{"schema_version":1,"id":"a","at":1}': "missing_time",
    b'{"schema_version":1,"id":7,"at":"2026-11-16T00:00:00Z"}': "bad_type",
    b'{"schema_version":1,"id":"a","at":"2026-11-16T00:00:00Z","files":"many"}': "bad_type",
    b'{"schema_version":1,"id":"a","at":"2026-11-16T00:00:00Z","files":-1}': "bad_type",
    b'{"schema_version":1,"id":"a","at":"2026-11-16T00:00:00Z","files":1.5}': "bad_type",
    b'{"schema_version":1,"id":"a","at":"2026-11-16T00:00:00Z","locations":[1]}': "bad_type",
    b'{"schema_version":1,"id":"a","at":"2026-11-16T00:00:00Z","expires_at":"soon"}': "bad_type",
    b'{"schema_version":"1","id":"a","at":"2026-11-16T00:00:00Z"}': "bad_type",
    b'{"schema_version":1,"id":"a","id":"b","at":"2026-11-16T00:00:00Z"}': "repeated_field",
    b'{"schema_version":1,"id":"' + b"a" * (1024 * 1024) + b'"}': "too_long",
}


def line_of(event: AuditEvent, replica: str = "host-1") -> bytes:
    return to_line(event, replica).rstrip(b"\n")


def parsed(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


class Story:
    """Makes up requests of a few recipients, as an edge and a catalog tell of them."""

    def __init__(self, seed: int, start: datetime = START) -> None:
        self._random = Random(seed)
        self._start = start

    def lines(self, requests: int, hours: float = 40) -> list[bytes]:
        made: list[AuditEvent] = []
        for _ in range(requests):
            made += self._request(self._start + timedelta(hours=hours * self._random.random()))
        return [line_of(event) for event in made]

    def _request(self, began: datetime) -> Iterator[AuditEvent]:
        kinds = ("query", "query", "cut", "killed", "credential", "listing", "denial", "stranger", "platform")
        yield from getattr(self, f"_{self._random.choice(kinds)}")(began, self._facts())

    def _query(self, began: datetime, facts: dict[str, Any], outcome: str = "OK") -> Iterator[AuditEvent]:
        took = timedelta(seconds=self._random.choice((0.2, 3, 7200)))
        first = self._random.randrange(1, 50)
        # The last one is of a gateway that is newer than the job.
        operations = ("queryTable", "queryTableChanges", "getQueryInfo", "queryTableLater")
        facts |= {"operation": self._random.choice(operations), "version": 4}
        yield self._event(
            began,
            AuditKind.GRANT,
            facts,
            mode="url",
            files=first,
            file_bytes=first * 1000,
            locations=("s3a://lake/orders/", "s3://other/orders"),
            expires_at=began + timedelta(hours=1),
        )
        yield self._event(
            began + took,
            AuditKind.REQUEST,
            facts,
            outcome=outcome,
            files=first * 3,
            file_bytes=first * 3000,
            expires_at=began + took + timedelta(hours=1),
        )

    def _cut(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        yield from self._query(began, facts, outcome="CLIENT_CLOSED_REQUEST")

    def _killed(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        yield next(self._query(began, facts))

    def _credential(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        facts |= {"operation": "generateTemporaryTableCredentials"}
        yield self._event(
            began,
            AuditKind.GRANT,
            facts,
            mode="dir",
            locations=("s3://lake/orders",),
            credential_id=f"ASIA{self._random.randrange(10**6)}",
            expires_at=began + timedelta(minutes=47),
        )

    def _listing(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        facts |= {"operation": "listShares", "share": "", "schema": "", "table": ""}
        yield self._event(began, AuditKind.REQUEST, facts)

    def _denial(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        facts |= {"operation": "queryTable"}
        yield self._event(began, AuditKind.DENIAL, facts, outcome="RESOURCE_DOES_NOT_EXIST")

    def _stranger(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        facts |= {"operation": "queryTable", "principal": "", "table": f"guess-{self._random.random()}"}
        yield self._event(began, AuditKind.DENIAL, facts, outcome="UNAUTHENTICATED")

    def _platform(self, began: datetime, facts: dict[str, Any]) -> Iterator[AuditEvent]:
        facts |= {"operation": "catalog.Resolve", "remote": "ipv4:10.9.8.7:4711", "actor": "engine"}
        yield self._event(
            began,
            AuditKind.GRANT,
            facts,
            outcome="ok",
            mode="url,dir",
            locations=("s3://lake/orders",),
            expires_at=began + timedelta(minutes=1),
        )

    def _facts(self) -> dict[str, Any]:
        choice = self._random.choice
        return {
            "principal": choice(("acme", "globex", 'ini\u00a0tech "q"')),
            "share": choice(("sales", "Sales")),
            "schema": "eu",
            "table": choice(("orders", "ORDERS", "stock")),
            "request_id": f"{self._random.getrandbits(64):016x}",
            "remote": choice(("10.0.0.7", "10.0.1.9", "2001:db8::7", "::ffff:10.2.3.4")),
        }

    def _event(self, when: datetime, kind: AuditKind, facts: dict[str, Any], **more: Any) -> AuditEvent:
        known: dict[str, Any] = {"outcome": "OK", "duration_ms": self._random.randrange(900)} | facts | more
        return AuditEvent(id=f"{self._random.getrandbits(128):032x}", at=when, kind=kind, **known)
