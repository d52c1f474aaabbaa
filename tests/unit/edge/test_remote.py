from __future__ import annotations

from ipaddress import ip_network

import pytest

from gateway.edge.remote import client_address

PROXIES = (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.1.1.1", [], "10.1.1.1"),
        ("10.1.1.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.1.1", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
        ("10.1.1.1", ["6.6.6.6", "198.51.100.1, 10.2.2.2"], "198.51.100.1"),
        ("10.1.1.1", ["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        ("10.1.1.1", ["198.51.100.1, nonsense"], "10.1.1.1"),
        ("10.1.1.1", [""], "10.1.1.1"),
        ("::ffff:10.1.1.1", ["198.51.100.1"], "198.51.100.1"),
        ("2001:db8::5", ["2a00::1"], "2a00::1"),
        (None, ["198.51.100.1"], ""),
    ],
)
def test_the_nearest_address_that_is_no_trusted_proxy(
    peer: str | None, forwarded: list[str], expected: str
) -> None:
    assert client_address(peer, forwarded, PROXIES) == expected


def test_without_trusted_proxies_the_header_is_not_believed() -> None:
    assert client_address("10.1.1.1", ["198.51.100.1"], ()) == "10.1.1.1"
