"""Ports for the servers of tests."""

from __future__ import annotations

from collections import deque

import pytest

from tests import ports
from tests.ports import free_port, free_ports


@pytest.fixture(autouse=True)
def ten_ports(monkeypatch):
    monkeypatch.setattr(ports, "FIRST_PORT", 1)
    monkeypatch.setattr(ports, "LAST_PORT", 10)
    monkeypatch.setattr(ports, "_given", deque(maxlen=5))
    monkeypatch.setattr(ports, "_is_free", lambda port: port not in (3, 14))


def test_port_is_given_again_after_half_of_the_range_at_the_earliest():
    for _ in range(20):
        assert len({free_port(), *free_ports(3), free_port()}) == 5


def test_port_is_free_with_the_one_above_it():
    assert {free_ports(1, also=10)[0] for _ in range(100)} == {1, 2, 5, 6, 7, 8, 9, 10}
