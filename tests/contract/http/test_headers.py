"""Headers of every answer, and ids of requests."""

from __future__ import annotations

import re

import pytest

from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway


def test_every_answer_is_protected_and_names_no_server(client: Client, gateway: Gateway) -> None:
    for path in (
        "/shares",
        f"{gateway.plain.path}/version",
        "/docs",
        "/openapi.json",
        "/nothing",
        "/shares/nowhere",
    ):
        answer = client.get(path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Server"] is None


def test_answers_for_one_recipient_are_not_stored(client: Client, gateway: Gateway) -> None:
    for path in (
        "/shares",
        f"{gateway.plain.path}/version",
        f"{gateway.plain.path}/metadata",
        "/shares/nowhere",
    ):
        assert client.get(path).headers["Cache-Control"] == "no-store"


@pytest.mark.smoke
def test_x_request_id_comes_back(client: Client, gateway: Gateway) -> None:
    headers = {"x-request-id": "my-request.1"}
    for answer in (
        client.get("/shares", headers),
        client.get("/nothing", headers),
        client.post(f"{gateway.plain.path}/query", headers=headers),
    ):
        assert answer.headers["x-request-id"] == "my-request.1"


def test_x_request_id_that_is_not_sane_is_replaced(client: Client) -> None:
    made = client.get("/shares", {"x-request-id": "has space"}).headers["x-request-id"]
    assert made != "has space"
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", made)


def test_x_request_id_is_made_for_each_request(client: Client) -> None:
    assert client.get("/shares").headers["x-request-id"] != client.get("/shares").headers["x-request-id"]
