"""What runbooks and operations have people search logs for is spelled as it is in a log."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime

from gateway.adapters.audit_log import to_line
from gateway.adapters.json_log import JsonFormatter
from gateway.domain.audit import AuditEvent, AuditKind
from gateway.edge.exchange import OK
from tests.problems import assert_none, at
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

SEARCHES = [
    (at(page, match.start()), match[1])
    for page in (ROOT / "docs" / "operations.md", ROOT / "docs" / "runbooks.md")
    for match in re.finditer(r"grep (?:-\w+ )?'([^']+)'", page.read_text())
]


def test_search_of_a_page_matches_a_log_line():
    assert_none(
        f"{where}: grep '{search}' matches no line of the logs, which are\n{LINES}"
        for where, search in SEARCHES
        if search.replace("RECIPIENT", NAME) not in LINES
    )


def test_searches_are_found():
    assert {'"level":"error"', '"request_id":"ID"'} <= {search for _, search in SEARCHES}
