"""The header that tells what became of predicate hints."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway

NAME = "sluice-predicate-hints"


def test_without_hints_it_is_absent(client: Client, gateway: Gateway) -> None:
    bodies: list[dict[str, Any]] = [{}, {"predicateHints": []}, {"limitHint": 1}]
    for body in bodies:
        assert client.query(gateway.plain, body).headers[NAME] is None


def test_hints_that_cannot_be_used_are_counted_and_lose_no_file(client: Client, gateway: Gateway) -> None:
    body = {"predicateHints": ["this is ( not SQL", "no_such_column = 1"], "jsonPredicateHints": "{"}
    answer = client.query(gateway.plain, body)
    assert answer.headers[NAME] == "used=0, skipped=3"
    assert len(answer.streamed()) == 2 + gateway.plain.files


def test_a_hint_that_can_be_used_is_counted(client: Client, gateway: Gateway) -> None:
    answer = client.query(gateway.plain, {"predicateHints": ["day = 'monday'", "nonsense ("]})
    assert answer.headers[NAME] == "used=1, skipped=1"


def test_it_is_numbers_whatever_the_hints_say(client: Client, gateway: Gateway) -> None:
    hints = {"op": "equal", "children": [{"op": "column", "name": "day", "valueType": "string"}]}
    for body in ({"jsonPredicateHints": json.dumps(hints)}, {"predicateHints": ["\r\nx: y"]}):
        assert re.fullmatch(r"used=[0-9]+, skipped=[0-9]+", client.query(gateway.plain, body).headers[NAME])


def test_metadata_has_none(client: Client, gateway: Gateway) -> None:
    assert client.get(f"{gateway.plain.path}/metadata").headers[NAME] is None
