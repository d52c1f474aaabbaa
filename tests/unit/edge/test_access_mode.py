from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from itertools import product

from gateway.edge.access_mode import negotiate
from gateway.edge.capabilities import parse
from gateway.v1.catalog_pb2 import ACCESS_MODE_DIR, ACCESS_MODE_URL, Table
from tests.cases import each_case
from tests.fakes.http_connection import Reply
from tests.unit.edge.conftest import Edge

MODES = {"url": ACCESS_MODE_URL, "dir": ACCESS_MODE_DIR}
NAME = "delta-sharing-capabilities"
TABLES = {"url": "orders", "dir": "dirs", "url,dir": "both"}
# Of the capability, and of the mode: drafts of the protocol called dir prefix.
KEYS = ("accessModes", "accessMode", "ACCESSMODES")
WORDS = ("dir", "prefix")
CALLS: dict[str, Callable[[Edge, str, dict[str, str]], Awaitable[Reply]]] = {
    "metadata": lambda edge, path, headers: edge.get(f"{path}/metadata", **headers),
    "query": lambda edge, path, headers: edge.post(f"{path}/query", b"{}", **headers),
    "credentials": lambda edge, path, headers: edge.post(
        f"{path}/temporary-table-credentials", b"{}", **headers
    ),
}

# By what the table offers and what the client says: the modes in the response, or REFUSED, and whether a
# query and a request for credentials are served. Metadata is served unless the modes are REFUSED.
REFUSED = None
MATRIX: dict[tuple[str, str], tuple[str | None, bool, bool]] = {
    ("url", ""): ("", True, False),
    ("url", "url"): ("url", True, False),
    ("url", "dir"): ("url", True, False),
    ("url", "url,dir"): ("url", True, False),
    ("dir", ""): ("", False, True),
    ("dir", "url"): (REFUSED, False, False),
    ("dir", "dir"): ("dir", False, True),
    ("dir", "url,dir"): ("dir", False, True),
    ("url,dir", ""): ("", True, True),
    ("url,dir", "url"): ("url", True, True),
    ("url,dir", "dir"): ("dir", True, True),
    ("url,dir", "url,dir"): ("url,dir", True, True),
}
# Of a refusal, by what the table offers.
REASONS = {"url": "does not offer dir access, only url", "dir": "offers dir access only, and no URLs"}


def table(*modes: str) -> Table:
    return Table(share="s", schema="d", name="t", access_modes=[MODES[mode] for mode in modes])


def expected(offered: str, said: str, key: str, word: str, call: str) -> tuple[int, str | None]:
    """Return the status, and the capabilities of a response that is served."""
    modes, has_urls, has_credentials = MATRIX[offered, said]
    is_served = {"metadata": modes is not REFUSED, "query": has_urls, "credentials": has_credentials}[call]
    if not is_served:
        return 400, None
    # The files are in a format, which a credential is not.
    parts = [] if call == "credentials" else ["responseformat=parquet"]
    if said:
        parts.append(f"{key}={(modes or '').replace('dir', word)}")
    return 200, ";".join(parts) or None


async def test_access_modes_of_every_table_client_spelling_and_call_are_negotiated(edge: Edge) -> None:
    wrong = {}
    for (offered, said), key, word, call in product(MATRIX, KEYS, WORDS, CALLS):
        sent = f"{key}={said.replace('dir', word)}" if said else ""
        path = f"/shares/Sales/schemas/eu/tables/{TABLES[offered]}"
        reply = await CALLS[call](edge, path, {NAME: sent} if sent else {})
        found = reply.status, reply.headers.get(NAME)
        body = json.loads(reply.body) if reply.status == 400 else {}
        is_explained = not body or (
            body["errorCode"] == "UNSUPPORTED_OPERATION"
            and body["message"].startswith(f"table Sales.eu.{TABLES[offered]} {REASONS[offered]}")
        )
        if found != expected(offered, said, key, word, call) or not is_explained:
            wrong[call, offered, sent] = (*found, body)
    assert wrong == {}


@each_case(
    ("client", "offered", "answered"),
    [
        # In the order of the table.
        ("accessMode=dir,url", ("url", "dir"), "accessMode=url,dir"),
        ("accessModes=URL,Dir", ("url", "dir"), "accessModes=url,dir"),
        ("accessModes=", ("url", "dir"), ""),
        ("accessModes=nonsense", ("dir",), ""),
        ("accessModes=nonsense", ("url", "dir"), ""),
    ],
)
def test_access_modes_in_another_order_or_unknown_are_those_of_the_table(
    client: str, offered: tuple[str, ...], answered: str
) -> None:
    assert negotiate(parse([client]), table(*offered)) == answered
