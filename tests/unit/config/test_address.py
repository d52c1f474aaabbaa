from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.address import Address, is_host, is_loopback, parse_listener, parse_target, parse_tcp
from tests.cases import each_case


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7001", Address("127.0.0.1", 7001)),
        ("[::1]:0", Address("::1", 0)),
        ("catalog.ns.svc.:65535", Address("catalog.ns.svc.", 65535)),
    ],
)
def test_host_and_port_are_told_apart(text, address):
    assert parse_tcp(text) == address
    assert str(address) == text


@each_case(
    "text",
    [
        "",
        "7001",
        ":7001",
        "a:",
        "a:65536",
        "a:x",
        "a:-1",
        "a:\u0667",
        "::1:7001",
        "[::1]",
        "[a b]:1",
        "a b:1",
        "-a:1",
        "1.2.3:1",
        "a:1\n",
    ],
)
def test_what_is_no_host_and_port_is_refused(text):
    with pytest.raises(ValueError, match="must be host:port"):
        parse_tcp(text)


@pytest.mark.parametrize("text", ["unix:/run/a.sock", "unix:///run/a.sock"])
def test_a_socket_has_a_whole_path(text):
    assert parse_listener(text) == Address("", 0, "/run/a.sock")


@each_case("text", ["unix:", "unix:a.sock", "unix://host/a.sock", "unix:/"])
def test_a_socket_without_one_is_refused(text):
    with pytest.raises(ValueError, match="must name a socket"):
        parse_listener(text)


@each_case(
    ("text", "address"),
    [
        ("dns:///catalog:7001", Address("catalog", 7001)),
        ("dns:catalog:7001", Address("catalog", 7001)),
        ("dns://8.8.8.8/catalog:7001", Address("catalog", 7001)),
        ("ipv4:10.0.0.1:7001", Address("10.0.0.1", 7001)),
        ("ipv6:[::1]:7001", Address("::1", 7001)),
        ("catalog:7001", Address("catalog", 7001)),
        ("unix:/run/a.sock", Address("", 0, "/run/a.sock")),
    ],
)
def test_a_target_is_what_a_channel_opens(text, address):
    assert parse_target(text) == address


@each_case("text", ["", "catalog", "dns:///catalog", "http://catalog:7001", "xds:///catalog"])
def test_another_target_is_refused(text):
    with pytest.raises(ValueError, match="must be"):
        parse_target(text)


@each_case("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LocalHost"])
def test_loopback_is_private(host):
    assert is_loopback(host)
    assert Address(host, 1).is_private


@each_case("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", "localhost.example.com", "", "127.1"])
def test_the_rest_is_not(host):
    assert not is_loopback(host)
    assert not Address(host, 1).is_private


@each_case(("host", "version"), [("10.0.0.1", 4), ("::1", 6), ("localhost", None), ("", None)])
def test_an_ip_address_has_a_version(host, version):
    assert Address(host, 1).ip_version == version


def test_a_socket_is_private():
    assert parse_listener("unix:/run/a.sock").is_private


@given(st.text())
def test_no_text_breaks_a_parser(text):
    is_host(text)
    for parse in (parse_tcp, parse_listener, parse_target):
        with suppress(ValueError):
            parse(text)
