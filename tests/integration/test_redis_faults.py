"""A Redis that is slow, resets connections, swallows answers or is gone: requests succeed without it."""

from __future__ import annotations

import signal

import pytest

from tests.components import TOXIPROXY
from tests.integration.replica import PATIENT, Provider, agree, replica
from tests.waiting import eventually_async

pytestmark = [pytest.mark.component(TOXIPROXY), pytest.mark.system]


@pytest.mark.parametrize(
    ("toxic", "attributes", "reason"),
    [
        ("latency", {"latency": 2000}, "timeout"),
        ("reset_peer", {"timeout": 0}, "connection"),
        ("timeout", {"timeout": 0}, "timeout"),
        ("slow_close", {"delay": 5000}, None),
        ("limit_data", {"bytes": 3}, "connection"),
    ],
)
async def test_faults_on_the_way_are_misses(proxy, caplog, toxic, attributes, reason):
    provider = Provider()
    url = f"redis://127.0.0.1:{proxy.port}"
    # Short only where the fault is a timeout: on a busy machine, other faults could become one.
    timeout = "300ms" if reason == "timeout" else PATIENT
    async with replica(provider, url=url, timeout=timeout) as one, replica(provider, url=url) as two:
        await agree(one, two)
        proxy.add(toxic, **attributes)
        for number in range(30):
            await one.issue(f"during-{number}")
        if reason is not None:
            assert one.errors(reason) >= 5
            assert not one.is_up
            # Two operations for each request would have failed, had it not been left alone.
            assert one.errors(reason) < 30
            assert caplog.text.count("redis is out of order") <= 2
        proxy.remove(toxic)
        await eventually_async(lambda: one.is_up)
        await eventually_async(lambda: two.is_up)
        await agree(one, two)
    assert sum("/during-" in str(scope.location) for scope in provider.calls) == 30
    if timeout is PATIENT:
        # They agreed at once.
        assert len(provider.calls) == 32


async def test_gone_and_back(proxy, caplog):
    provider = Provider()
    url = f"redis://127.0.0.1:{proxy.port}"
    async with replica(provider, url=url) as one, replica(provider, url=url) as two:
        await one.issue("before")
        proxy.set_enabled(enabled=False)
        for number in range(30):
            await one.issue(f"during-{number}")
        assert not one.is_up
        assert caplog.text.count("redis is out of order (connection)") == 1
        proxy.set_enabled(enabled=True)
        await eventually_async(lambda: one.is_up)
        assert caplog.text.count("redis is back") == 1
        assert await one.issue("after") == await two.issue("after")
    assert len(provider.calls) == 32


async def test_a_server_that_is_stopped_in_its_tracks_is_left_alone(server):
    provider = Provider()
    async with replica(provider, url=server.url, timeout="200ms") as one:
        await one.issue("before")
        # Holds up every command, as a large command of another client would.
        server.process.process.send_signal(signal.SIGSTOP)
        try:
            for number in range(10):
                await one.issue(f"during-{number}")
        finally:
            server.process.process.send_signal(signal.SIGCONT)
        assert one.errors("timeout") >= 5
        await eventually_async(lambda: one.is_up)
        assert len(provider.calls) == 11
