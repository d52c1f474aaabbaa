"""Delta Sharing Capabilities Header; test_access_modes.py has its access modes."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

NAME = "delta-sharing-capabilities"


def metadata(client: Client, table: TableFacts, capabilities: str) -> Answer:
    return client.get(f"{table.path}/metadata", {NAME: capabilities})


def query(client: Client, table: TableFacts, capabilities: str) -> Answer:
    return client.post(f"{table.path}/query", headers={NAME: capabilities})


@pytest.fixture(params=[metadata, query], ids=["metadata", "query"])
def ask(request: pytest.FixtureRequest):
    return request.param


@pytest.mark.parametrize("capabilities", ["", " responseFormat = PARQUET ;x=y;;=;z"])
def test_responseformat_parquet_in_any_spelling(
    client: Client, gateway: Gateway, ask, capabilities: str
) -> None:
    answer = ask(client, gateway.plain, capabilities)
    assert answer.status == 200
    assert answer.headers[NAME] == "responseformat=parquet"


def test_the_word_delta_never_stands_in_the_capabilities_of_a_parquet_answer(
    client: Client, gateway: Gateway, ask
) -> None:
    for capabilities in ("", "readerfeatures=deltavectors", "accessModes=url;x=delta", "delta=delta"):
        assert "delta" not in ask(client, gateway.plain, capabilities).headers[NAME].lower()


def test_unknown_capabilities_are_ignored(client: Client, gateway: Gateway, ask) -> None:
    plain = ask(client, gateway.plain, "")
    answer = ask(client, gateway.plain, "asyncquery=true;future=1,2,3;readerfeatures=unheardof")
    assert answer.lines()[:2] == plain.lines()[:2]


def test_changes_of_a_table_of_dir_are_400_and_name_dir(client: Client, gateway: Gateway) -> None:
    for capabilities in ("", "accessModes=dir", "accessModes=url,dir"):
        answer = client.changes(gateway.dir_only, capabilities, startingVersion=1)
        assert answer.error() == (400, "UNSUPPORTED_OPERATION")
        assert "dir" in answer.json()["message"]
