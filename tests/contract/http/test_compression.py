"""Answers in the coding that a client asks for, the same whatever it is."""

from __future__ import annotations

import pytest

from tests.compressed import Reader, plain
from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

# What a client sends, and what it gets; tests/unit/edge/test_accept_encoding.py has more.
CODINGS = {"zstd;q=0.1, gzip;q=0.2": "gzip", "gzip, deflate, br, zstd": "zstd"}


def query(client: Client, table: TableFacts, accepted: str) -> Answer:
    return client.post(f"{table.path}/query", headers={"Accept-Encoding": accepted})


def lines(answer: Answer) -> list[bytes]:
    return plain(dict(answer.headers), answer.body).splitlines()


@pytest.mark.parametrize(("accepted", "coding"), CODINGS.items())
def test_a_query_is_compressed_as_the_client_likes_it_best(
    client: Client, gateway: Gateway, accepted: str, coding: str
) -> None:
    answer = query(client, gateway.large, accepted)
    assert answer.status == 200
    assert answer.headers["Content-Encoding"] == coding
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in answer.headers
    assert len(lines(answer)) == 2 + gateway.large.files


@pytest.mark.parametrize("accepted", ["", "gzip;q=0.1, identity;q=0.2"])
def test_a_query_is_sent_as_it_is_to_who_can_read_nothing_else_or_wants_it_so(
    client: Client, gateway: Gateway, accepted: str
) -> None:
    answer = query(client, gateway.large, accepted)
    assert "Content-Encoding" not in answer.headers
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert len(answer.lines()) == 2 + gateway.large.files


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_metadata_and_lists_are_compressed_with_their_length_where_they_must_be(
    client: Client, gateway: Gateway, coding: str
) -> None:
    for path in ("/shares", f"{gateway.plain.path}/metadata"):
        expected = client.get(path)
        answer = client.get(path, {"Accept-Encoding": f"{coding}, identity;q=0"})
        assert answer.headers["Content-Encoding"] == coding
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        assert plain(dict(answer.headers), answer.body) == expected.body
        assert answer.headers["Vary"] == expected.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["Cache-Control"] == expected.headers["Cache-Control"]


def test_a_short_answer_is_sent_as_it_is(client: Client) -> None:
    answer = client.get("/shares", {"Accept-Encoding": "gzip, zstd"})
    assert "Content-Encoding" not in answer.headers
    assert answer.json()["items"]


def test_an_error_is_sent_as_it_is(client: Client) -> None:
    answer = client.get("/shares/none", {"Accept-Encoding": "gzip, identity;q=0"})
    assert answer.error() == (404, "RESOURCE_DOES_NOT_EXIST")


@pytest.mark.smoke
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_the_end_of_the_answer_is_the_end_of_what_is_compressed(
    client: Client, gateway: Gateway, coding: str
) -> None:
    capable = {"Accept-Encoding": coding, "delta-sharing-capabilities": "includeEndStreamAction=true"}
    answer = client.post(f"{gateway.large.path}/query", headers=capable)
    reader = Reader(coding)
    assert reader.read(answer.body).splitlines()[-1].startswith(b'{"endStreamAction":')
    assert reader.is_whole
