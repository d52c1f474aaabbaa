"""Names: what may stand in a path, and how it is read."""

from __future__ import annotations

from tests.cases import each_case
from tests.contract.http.client import Client
from tests.contract.http.facts import Gateway


# Of each kind one; tests/unit/edge/test_app.py has more.
@each_case("name", ["a%2Fb", "a%00b", "..", "%2e%2e", "%ff", "x" * 5000])
def test_a_name_that_cannot_exist_is_404(client: Client, gateway: Gateway, name: str) -> None:
    table = gateway.plain
    for path in (
        f"/shares/{name}",
        f"/shares/{name}/schemas",
        f"/shares/{table.share}/schemas/{name}/tables",
        f"/shares/{table.share}/schemas/{table.schema}/tables/{name}/version",
    ):
        assert client.get(path).error() == (404, "RESOURCE_DOES_NOT_EXIST"), path


def test_a_slash_in_a_name_does_not_reach_another_resource(client: Client, gateway: Gateway) -> None:
    table = gateway.plain
    assert client.get(f"/shares/{table.share}%2Fschemas").status == 404
    assert client.get(f"/shares/x/..%2F{table.share}").status == 404


def test_a_name_may_be_percent_encoded(client: Client, gateway: Gateway) -> None:
    share = gateway.plain.share
    encoded = "".join(f"%{byte:02x}" for byte in share.encode())
    assert client.get(f"/shares/{encoded}").json()["share"]["name"] == share


def test_a_plus_stays_a_plus(client: Client) -> None:
    assert "a+b" in client.get("/shares/a+b").json()["message"]
