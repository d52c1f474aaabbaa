"""Access Modes: what a client says that it can, what a table offers, and what each call answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cases import each_case
from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

NAME = "delta-sharing-capabilities"
TABLES = {"url": "plain", "dir": "dir_only", "url,dir": "both_modes"}

CALLS: dict[str, Callable[[Client, str, dict[str, str]], Answer]] = {
    "metadata": lambda client, path, headers: client.get(f"{path}/metadata", headers),
    "query": lambda client, path, headers: client.post(f"{path}/query", headers=headers),
    "credentials": lambda client, path, headers: client.post(
        f"{path}/temporary-table-credentials", headers=headers
    ),
}

REFUSED = None
SAID_NOTHING = ""


# Each outcome and each spelling on the wire; tests/unit/edge/test_access_mode.py has every combination.
@pytest.mark.parametrize(
    ("call", "offered", "said", "answered"),
    [
        ("metadata", "url", "accessMode=prefix", "accessMode=url"),
        ("metadata", "dir", SAID_NOTHING, ""),
        ("metadata", "dir", "accessModes=url", REFUSED),
        ("metadata", "url,dir", "accessModes=dir", "accessModes=dir"),
        ("metadata", "url,dir", "ACCESSMODES=url,dir", "ACCESSMODES=url,dir"),
        ("query", "url", "ACCESSMODES=dir", "ACCESSMODES=url"),
        ("query", "dir", SAID_NOTHING, REFUSED),
        ("query", "dir", "accessModes=dir", REFUSED),
        ("query", "url,dir", "accessModes=url,prefix", "accessModes=url,prefix"),
        ("query", "url,dir", "accessMode=URL,DIR", "accessMode=url,dir"),
        ("credentials", "url", "accessModes=dir", REFUSED),
        ("credentials", "dir", "accessModes=url", REFUSED),
        ("credentials", "dir", "accessMode=url,prefix", "accessMode=prefix"),
        ("credentials", "url,dir", SAID_NOTHING, ""),
        ("credentials", "url,dir", "accessModes=url", "accessModes=url"),
    ],
)
def test_negotiation(
    client: Client, gateway: Gateway, call: str, offered: str, said: str, answered: str | None
) -> None:
    table: TableFacts = getattr(gateway, TABLES[offered])

    answer = CALLS[call](client, table.path, {NAME: said} if said else {})

    if answered is REFUSED:
        assert answer.error() == (400, "UNSUPPORTED_OPERATION")
        assert " dir " in answer.json()["message"]
        return
    assert answer.status == 200
    # The files are in a format, which a credential is not.
    parts = ["" if call == "credentials" else "responseformat=parquet", answered]
    assert (answer.headers[NAME] or "") == ";".join(part for part in parts if part)


@each_case("kind", TABLES.values())
def test_listings_and_metadata_advertise_the_same_whatever_is_said(
    client: Client, gateway: Gateway, kind: str
) -> None:
    table: TableFacts = getattr(gateway, kind)
    lists = (f"/shares/{table.share}/all-tables", f"/shares/{table.share}/schemas/{table.schema}/tables")
    listed = [
        item for path in lists for item in client.get(path).json()["items"] if item["name"] == table.name
    ]
    # Not "url" alone: it is the one thing that a table of directories refuses.
    said = [{}, {NAME: "accessModes=dir"}, {NAME: "accessMode=url,prefix"}]
    described = [client.get(f"{table.path}/metadata", headers).lines()[1]["metaData"] for headers in said]
    advertised = {
        "location": table.location,
        "accessModes": list(table.access_modes),
        "auxiliaryLocations": list(table.auxiliary_locations) or None,
    }
    assert len(listed) == 2
    for found in (*listed, *described):
        assert {name: found.get(name) for name in advertised} == advertised


@pytest.mark.parametrize("kind", ["dir_only", "both_modes"])
def test_credentials_name_the_locations_as_they_are_advertised(
    client: Client, gateway: Gateway, kind: str
) -> None:
    table: TableFacts = getattr(gateway, kind)
    described = client.get(f"{table.path}/metadata").lines()[1]["metaData"]
    for location in (described["location"], *described.get("auxiliaryLocations", ())):
        answer = client.post(f"{table.path}/temporary-table-credentials", {"location": location})
        assert answer.json()["credentials"]["location"] == location
