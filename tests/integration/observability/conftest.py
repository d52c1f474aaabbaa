"""One gateway in many processes that recipients have used, for all tests that look at what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.waiting import eventually
from tests.watched import DIR_TABLES, HASTY, Watched, running_watched


@pytest.fixture(scope="package")
def watched(tmp_path_factory) -> Iterator[Watched]:
    with running_watched(tmp_path_factory.mktemp("watched")) as gateway:
        _use(gateway)
        yield gateway


def _use(gateway: Watched) -> None:
    """Ask for something of every kind, and be refused some of it."""
    gateway.succeed(DIR_TABLES[:3])
    assert gateway.ask("nobody", "/shares").status == 401
    assert gateway.query("acme", "big", "nothing").status == 404
    assert any(gateway.ask(HASTY, "/shares").status == 429 for _ in range(20))
    gateway.sts.error = "AccessDenied"
    assert gateway.vend("acme", "t30").status == 503
    gateway.sts.error = ""
    # Workers of the edge report once a second, each for itself.
    for recipient, outcome in ((HASTY, "throttled"), ("acme", "failed")):
        eventually(partial(_has_counted, gateway, recipient, outcome))


def _has_counted(gateway: Watched, recipient: str, outcome: str) -> bool:
    labels = {"recipient": recipient, "outcome": outcome}
    return any(
        sample.name == "sluice_recipient_requests_total"
        and labels.items() <= sample.labels.items()
        and sample.value > 0
        for sample in gateway.samples()
    )
