from __future__ import annotations

import pytest

from gateway.errors import InvalidArgument
from gateway.rpc.dial import _target


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
def test_one_target_stands_for_all_addresses(addresses, target, authority):
    assert _target(addresses) == (target, authority)


def test_names_and_mixtures_are_refused():
    with pytest.raises(InvalidArgument, match="dns:///"):
        _target(("a:1", "b:1"))
    with pytest.raises(InvalidArgument, match="mix"):
        _target(("127.0.0.1:1", "[::1]:1"))
