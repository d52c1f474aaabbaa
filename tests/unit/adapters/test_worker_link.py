from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, Counter

from gateway.adapters.worker_link import Message, received, reporting
from gateway.adapters.worker_metrics import from_report
from tests.waiting import SECONDS


class Worker:
    """One end of a link, and what its reports are made of."""

    def __init__(self) -> None:
        self.link, self.supervisor = socket.socketpair()
        self.registry = CollectorRegistry()
        self.requests = Counter("requests", "Requests.", registry=self.registry)
        self.services: dict[str, str] = {"catalog": "ok"}
        self.failing = False
        self.lost = asyncio.Event()

    def reporting(self):
        return reporting(self.link, self.lost.set, self.registry, self.ready)

    async def ready(self) -> Mapping[str, str]:
        if self.failing:
            raise RuntimeError("no answer")
        return self.services


@pytest.fixture
async def worker() -> Worker:
    return Worker()


def count_of(message: Message) -> float:
    assert message.metrics is not None
    (family,) = from_report(message.metrics)
    return family.samples[0].value


async def test_services_and_metrics_are_reported_at_once(worker):
    worker.requests.inc(3)
    async with asyncio.timeout(SECONDS), received(worker.supervisor) as messages, worker.reporting():
        first = [await anext(messages), await anext(messages)]

    assert [message.services for message in first if message.services] == [{"catalog": "ok"}]
    assert [count_of(message) for message in first if message.metrics] == [3]


async def test_the_last_report_is_of_the_end(worker):
    async with asyncio.timeout(SECONDS), received(worker.supervisor) as messages:
        async with worker.reporting() as reporter:
            reporter.drain()
            worker.requests.inc(8)
        counts = [count_of(message) async for message in messages if message.metrics]

    assert counts[-1] == 8
    assert not worker.lost.is_set()


async def test_a_worker_hears_of_its_supervisors_end(worker):
    async with asyncio.timeout(SECONDS), worker.reporting():
        async with received(worker.supervisor):
            pass
        await worker.lost.wait()


async def test_a_supervisor_that_was_gone_before_is_noticed_too(worker):
    worker.supervisor.close()
    async with asyncio.timeout(SECONDS), worker.reporting():
        await worker.lost.wait()


async def test_half_a_report_of_a_killed_worker_is_left_out(worker):
    async with asyncio.timeout(SECONDS), received(worker.supervisor) as messages:
        worker.link.sendall(b'{"services": {}}\n{"metrics": [["reque')
        worker.link.close()

        assert [message async for message in messages] == [Message(services={})]


async def test_a_check_that_fails_stops_no_report(worker, caplog):
    worker.failing = True
    async with asyncio.timeout(SECONDS), received(worker.supervisor) as messages, worker.reporting():
        assert count_of(await anext(messages)) == 0

    assert "a report to the supervisor failed" in caplog.text
