"""The rate of a recipient."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway


@pytest.mark.smoke
def test_a_recipient_over_its_rate_gets_429_with_retry_after_and_others_do_not(
    client: Client, gateway: Gateway
) -> None:
    answers = [client.get("/shares", token=gateway.slow_token) for _ in range(gateway.slow_burst + 1)]
    assert answers[-1].error() == (429, "RESOURCE_EXHAUSTED")
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert {answer.status for answer in answers[:-1]} == {200}
    assert client.get("/shares").status == 200
