from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.remote import client_address
from tests.cases import each_case

PROXIES = (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))


@each_case(
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
        ("10.1.1.1", ["198.51.100.1, , 10.2.2.2,"], "198.51.100.1"),
        ("::ffff:10.1.1.1", ["198.51.100.1"], "198.51.100.1"),
        ("::ffff:203.0.113.9", [], "203.0.113.9"),
        ("2001:db8::5", ["2a00::1"], "2a00::1"),
        ("2001:db8::5", ["2A00:0:0::1, 10.2.2.2, 2001:DB8::6"], "2a00::1"),
    ],
)
def test_the_nearest_address_that_is_no_trusted_proxy(peer: str, forwarded: list[str], expected: str) -> None:
    assert client_address(peer, forwarded, PROXIES) == expected


@each_case(
    ("hop", "expected"),
    [
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2a00::1]:4711", "2a00::1"),
        ("[2a00::1]", "2a00::1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
    ],
)
def test_a_hop_may_have_a_port(hop: str, expected: str) -> None:
    assert client_address("10.1.1.1", [f"6.6.6.6, {hop}"], PROXIES) == expected


@each_case(
    "hop",
    [
        "unknown",
        "_hidden",
        "for=198.51.100.1",
        '"198.51.100.1"',
        "198.51.100.1:port",
        "198.51.100.1:4711:1",
        "[2a00::1",
        "[198.51.100.1]x",
        "fe80::1%eth0",
        "fe80::1%<script>",
        "198.51.100",
        "0x7f.1",
        "١٢٧.0.0.1",
    ],
)
def test_a_hop_that_is_no_address_ends_what_is_believed(hop: str) -> None:
    assert client_address("10.1.1.1", [f"6.6.6.6, {hop}, 10.2.2.2"], PROXIES) == "10.2.2.2"


@pytest.mark.parametrize(
    ("peer", "expected"), [(None, ""), ("", ""), ("/run/sluice.sock", "/run/sluice.sock")]
)
def test_a_peer_without_an_address_is_trusted_by_nobody(peer: str | None, expected: str) -> None:
    everybody = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    assert client_address(peer, ["198.51.100.1"], everybody) == expected


def test_a_peer_may_have_a_zone() -> None:
    assert client_address("fe80::1%eth0", ["2a00::1"], (ip_network("fe80::/10"),)) == "2a00::1"


def test_without_trusted_proxies_the_header_is_not_believed() -> None:
    assert client_address("10.1.1.1", ["198.51.100.1"], ()) == "10.1.1.1"


_addresses = st.ip_addresses()
_strangers = _addresses.filter(lambda address: not is_proxy(address))
_proxies = st.one_of(st.ip_addresses(network="10.0.0.0/8"), st.ip_addresses(network="2001:db8::/32"))
_made_up = st.lists(st.one_of(_addresses.map(str), st.text(st.characters(codec="latin-1"), max_size=30)))


def is_proxy(address: IPv4Address | IPv6Address) -> bool:
    plain = getattr(address, "ipv4_mapped", None) or address
    return any(plain in network for network in PROXIES)


@given(
    client=_strangers,
    proxies=st.lists(_proxies, min_size=1, max_size=4),
    made_up=_made_up,
    split=st.integers(0, 9),
)
def test_whatever_a_client_sends_its_own_address_is_found_behind_any_chain_of_proxies(
    client: IPv4Address | IPv6Address,
    proxies: list[IPv4Address | IPv6Address],
    made_up: list[str],
    split: int,
) -> None:
    *between, peer = proxies
    hops = [*made_up, str(client), *map(str, between)]
    # A header that came twice is the same as one with all of it.
    headers = [", ".join(part) for part in (hops[:split], hops[split:]) if part]
    found = ip_address(client_address(str(peer), headers, PROXIES))
    assert found == (getattr(client, "ipv4_mapped", None) or client)


@given(client=_strangers, made_up=_made_up)
def test_nobody_but_a_proxy_is_believed(client: IPv4Address | IPv6Address, made_up: list[str]) -> None:
    assert client_address(str(client), made_up, PROXIES) == client_address(str(client), [], PROXIES)


@given(made_up=_made_up)
def test_whatever_stands_in_the_header_the_log_gets_an_address(made_up: list[str]) -> None:
    found = client_address("10.1.1.1", made_up, PROXIES)
    assert str(ip_address(found)) == found
