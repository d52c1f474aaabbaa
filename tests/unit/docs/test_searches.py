"""What runbooks and operations have people search logs for is spelled as it is in a log."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime

import pytest

from gateway.adapters.audit_log import to_line
from gateway.adapters.json_log import JsonFormatter
from gateway.domain.audit import AuditEvent, AuditKind
from gateway.edge.exchange import OK
from tests.repository import ROOT

# What the pages put for a name or an id.
NAME, ID = "acme", "ID"
EVENT = AuditEvent(
    id="e1",
    at=datetime(2030, 1, 1, tzinfo=UTC),
    kind=AuditKind.GRANT,
    operation="queryTable",
    outcome=OK,
    principal=NAME,
    request_id=ID,
)
RECORD = logging.LogRecord("gateway", logging.ERROR, __file__, 1, "a message", None, None)
LINES = to_line(EVENT, "r1").decode() + JsonFormatter().format(RECORD)


def searches() -> list[str]:
    pages = ((ROOT / "docs" / name).read_text() for name in ("operations.md", "runbooks.md"))
    return sorted({found for page in pages for found in re.findall(r"grep (?:-\w+ )?'([^']+)'", page)})


@pytest.mark.parametrize("search", searches())
def test_search_finds_its_line(search):
    assert search.replace("RECIPIENT", NAME) in LINES


def test_searches_are_found():
    assert {'"level":"error"', '"request_id":"ID"'} <= set(searches())
