"""The settings that docs/api-gateway.md names for a load balancer before the API gateway."""

from __future__ import annotations

from ipaddress import ip_network

from gateway.edge.remote import client_address
from tests.integration.api_gateway.conftest import new_ports
from tests.proxies.front import PREFIX
from tests.waiting import eventually

LOAD_BALANCER = "127.0.0.2"
CHANGES = {
    "envoy": {
        "mutations: [{remove: x-forwarded-for}]": "mutations: [{remove: x-nothing}]",
        "use_remote_address: true": "use_remote_address: true\n                xff_num_trusted_hops: 1",
    },
    "nginx": {
        "# set_real_ip_from 10.0.0.0/8;": "set_real_ip_from 127.0.0.2;",
        "# real_ip_header": "real_ip_header",
        "# real_ip_recursive": "real_ip_recursive",
    },
}


def test_the_address_that_the_load_balancer_tells_of_is_found_and_logged(
    kind, start, two_recording_edges, authority, tmp_path
) -> None:
    addresses = [edge.address for edge in two_recording_edges]
    for edge in two_recording_edges:
        edge.reset()
    with start(tmp_path / "front", new_ports(), addresses, authority, changes=CHANGES[kind]) as front:
        # The client made the first one up, the load balancer appended the second.
        told = {"X-Forwarded-For": "6.6.6.6, 198.51.100.7"}
        front.ask(f"{PREFIX}/shares", headers=told, source=LOAD_BALANCER)
        eventually(lambda: [entry["remote"] for entry in front.access_log()] == ["198.51.100.7"])
    (asked,) = [asked for edge in two_recording_edges for asked in edge.asked]
    forwarded_for = asked.all("x-forwarded-for")
    assert client_address("127.0.0.1", forwarded_for, [ip_network("127.0.0.0/30")]) == "198.51.100.7"
