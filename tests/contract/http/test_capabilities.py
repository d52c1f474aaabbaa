"""Delta Sharing Capabilities Header, on metadata, query and changes."""

from __future__ import annotations

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

NAME = "delta-sharing-capabilities"


def metadata(client: Client, table: TableFacts, capabilities: str) -> Answer:
    return client.get(f"{table.path}/metadata", {NAME: capabilities})


def query(client: Client, table: TableFacts, capabilities: str) -> Answer:
    return client.post(f"{table.path}/query", headers={NAME: capabilities})


def changes(client: Client, table: TableFacts, capabilities: str) -> Answer:
    return client.get(f"{table.path}/changes?startingVersion=1", {NAME: capabilities})


@pytest.fixture(params=[metadata, query], ids=["metadata", "query"])
def ask(request: pytest.FixtureRequest):
    return request.param


@pytest.mark.parametrize(
    "capabilities",
    ["", "responseformat=parquet", "RESPONSEFORMAT=PARQUET", " responseFormat = Parquet ;", "x=y;;=;z"],
)
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


@pytest.mark.parametrize(
    ("table", "asked", "answered"),
    [
        ("plain", "accessModes=url", "accessModes=url"),
        ("plain", "accessModes=dir", "accessModes=url"),
        ("plain", "accessModes=url,dir", "accessModes=url"),
        ("both_modes", "accessModes=url", "accessModes=url"),
        ("both_modes", "accessModes=dir", "accessModes=dir"),
        ("both_modes", "accessModes=url,dir", "accessModes=url,dir"),
        ("both_modes", "accessModes=url,prefix", "accessModes=url,prefix"),
        ("both_modes", "accessMode=URL,DIR", "accessMode=url,dir"),
    ],
)
def test_accessmodes_in_common_are_answered_in_the_clients_spelling(
    client: Client, gateway: Gateway, ask, table: str, asked: str, answered: str
) -> None:
    answer = ask(client, getattr(gateway, table), asked)
    assert answer.status == 200
    assert answer.headers[NAME] == f"responseformat=parquet;{answered}"


def test_accessmodes_are_not_answered_to_a_client_that_did_not_ask(
    client: Client, gateway: Gateway, ask
) -> None:
    for capabilities in ("", "accessModes=", "accessModes=nonsense"):
        assert ask(client, gateway.both_modes, capabilities).headers[NAME] == "responseformat=parquet"


def test_accessmodes_url_on_a_table_of_dir_is_400(client: Client, gateway: Gateway, ask) -> None:
    answer = ask(client, gateway.dir_only, "accessModes=url")
    assert answer.error() == (400, "UNSUPPORTED_OPERATION")
    assert "dir" in answer.json()["message"]


def test_accessmodes_dir_on_a_table_of_dir(client: Client, gateway: Gateway) -> None:
    for modes in ("dir", "url,dir", "prefix"):
        answer = metadata(client, gateway.dir_only, f"accessModes={modes}")
        assert answer.status == 200
        assert answer.headers[NAME].split(";")[1] in {"accessModes=dir", "accessModes=prefix"}


def test_metadata_of_a_table_of_dir_is_served_to_a_client_that_says_nothing(
    client: Client, gateway: Gateway
) -> None:
    answer = metadata(client, gateway.dir_only, "")
    assert answer.status == 200
    assert answer.lines()[1]["metaData"]["accessModes"] == ["dir"]


@pytest.mark.parametrize("ask_for_files", [query, changes], ids=["query", "changes"])
def test_files_of_a_table_of_dir_are_400_and_it_names_dir(
    client: Client, gateway: Gateway, ask_for_files
) -> None:
    for capabilities in ("", "accessModes=dir", "accessModes=url,dir"):
        answer = ask_for_files(client, gateway.dir_only, capabilities)
        assert answer.error() == (400, "UNSUPPORTED_OPERATION")
        assert "dir" in answer.json()["message"]
