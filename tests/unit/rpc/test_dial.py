from __future__ import annotations

import pytest
from grpc import aio

from gateway.errors import InvalidArgument
from gateway.rpc.dial import dial


@pytest.mark.parametrize(
    ("addresses", "target", "authority"),
    [
        (("dns:///catalog:9400",), "dns:///catalog:9400", ""),
        (("unix:/run/s",), "unix:/run/s", ""),
        (("127.0.0.1:1",), "127.0.0.1:1", ""),
        (("127.0.0.1:1", "127.0.0.2:2"), "ipv4:127.0.0.1:1,127.0.0.2:2", "127.0.0.1"),
        (("[::1]:1", "[::1]:2"), "ipv6:[::1]:1,[::1]:2", "[::1]"),
    ],
)
def test_one_target_stands_for_all_addresses(addresses, target, authority, monkeypatch):
    opened = []
    monkeypatch.setattr(aio, "insecure_channel", lambda target, options: opened.append((target, options)))
    dial(addresses, None)
    ((actual, options),) = opened
    assert (actual, dict(options).get("grpc.default_authority", "")) == (target, authority)


def test_names_and_mixtures_are_refused():
    with pytest.raises(InvalidArgument, match="dns:///"):
        dial(("a:1", "b:1"), None)
    with pytest.raises(InvalidArgument, match="mix"):
        dial(("127.0.0.1:1", "[::1]:1"), None)
