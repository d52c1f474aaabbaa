"""One gateway in many processes that recipients have used, for all tests that look at what it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.waiting import eventually
from tests.watched import HASTY, RECIPIENTS, Watched, running_watched


@pytest.fixture(scope="package")
def watched(tmp_path_factory) -> Iterator[Watched]:
    with running_watched(tmp_path_factory.mktemp("watched")) as gateway:
        _use(gateway)
        yield gateway


def _use(gateway: Watched) -> None:
    """Ask for something of every kind, and be refused some of it."""
    for number, recipient in enumerate(RECIPIENTS):
        assert gateway.ask(recipient, "/shares").status == 200
        hints = b'{"predicateHints": ["station > 5"]}'
        assert gateway.query(recipient, "big", "ten_thousand_files", hints).status == 200
        assert gateway.vend(recipient, f"t{number}").status == 200
    assert gateway.ask("nobody", "/shares").status == 401
    assert gateway.query("acme", "big", "nothing").status == 404
    assert any(gateway.ask(HASTY, "/shares").status == 429 for _ in range(20))
    gateway.sts.error = "AccessDenied"
    assert gateway.vend("acme", "t30").status == 503
    gateway.sts.error = ""
    # Workers of the edge report once a second.
    eventually(
        lambda: _shows(gateway, "sluice_recipient_requests_total", recipient=HASTY, outcome="throttled")
    )


def _shows(gateway: Watched, name: str, **labels: str) -> bool:
    return any(
        sample.name == name and labels.items() <= sample.labels.items() and sample.value > 0
        for sample in gateway.samples()
    )
