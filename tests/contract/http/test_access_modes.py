"""Access Modes: what a client says that it can, what a table offers, and what each call answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.http.client import Answer, Client
from tests.contract.http.facts import Gateway, TableFacts

NAME = "delta-sharing-capabilities"
TABLES = {"url": "plain", "dir": "dir_only", "url,dir": "both_modes"}
# Of the capability, and of the mode that drafts of the protocol called otherwise.
SPELLINGS = [
    (key, word) for key in ("accessModes", "accessMode", "ACCESSMODES") for word in ("dir", "prefix")
]

CALLS: dict[str, Callable[[Client, str, dict[str, str]], Answer]] = {
    "metadata": lambda client, path, headers: client.get(f"{path}/metadata", headers),
    "query": lambda client, path, headers: client.post(f"{path}/query", headers=headers),
    "credentials": lambda client, path, headers: client.post(
        f"{path}/temporary-table-credentials", headers=headers
    ),
}

# By what the table offers and what the client says: the modes that metadata answers, or REFUSED, and whether
# a query and a request for credentials are served.
SAID_NOTHING = ""
REFUSED = None
MATRIX: dict[tuple[str, str], tuple[str | None, bool, bool]] = {
    ("url", SAID_NOTHING): ("", True, False),
    ("url", "url"): ("url", True, False),
    ("url", "dir"): ("url", True, False),
    ("url", "url,dir"): ("url", True, False),
    ("dir", SAID_NOTHING): ("", False, True),
    ("dir", "url"): (REFUSED, False, False),
    ("dir", "dir"): ("dir", False, True),
    ("dir", "url,dir"): ("dir", False, True),
    ("url,dir", SAID_NOTHING): ("", True, True),
    ("url,dir", "url"): ("url", True, True),
    ("url,dir", "dir"): ("dir", True, True),
    ("url,dir", "url,dir"): ("url,dir", True, True),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("spelling", SPELLINGS, ids=" ".join)
@pytest.mark.parametrize(("offered", "said"), MATRIX)
def test_negotiation(
    client: Client, gateway: Gateway, offered: str, said: str, spelling: tuple[str, str], call: str
) -> None:
    key, word = spelling
    table: TableFacts = getattr(gateway, TABLES[offered])
    modes, has_urls, has_credentials = MATRIX[offered, said]
    headers = {NAME: f"{key}={said.replace('dir', word)}"} if said else {}

    answer = CALLS[call](client, table.path, headers)

    is_served = {"metadata": modes is not REFUSED, "query": has_urls, "credentials": has_credentials}[call]
    if not is_served:
        assert answer.error() == (400, "UNSUPPORTED_OPERATION")
        assert " dir " in answer.json()["message"]
        return
    assert answer.status == 200
    answered = [part for part in (answer.headers[NAME] or "").split(";") if part.startswith(key)]
    assert answered == ([f"{key}={(modes or '').replace('dir', word)}"] if said else [])


@pytest.mark.parametrize("kind", TABLES.values())
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
