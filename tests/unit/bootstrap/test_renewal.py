from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gateway.adapters.certificate_metrics import CertificateMetrics
from gateway.bootstrap.renewal import Renewals, signatures
from gateway.errors import InvalidArgument
from tests.waiting import eventually_async


@dataclass
class Taker:
    """Takes up what a file says: refuses ``broken``, and waits with ``early`` as often as it is told to."""

    file: Path
    taken: list[str] = field(default_factory=list)
    tries: int = 0
    waits: int = 0

    async def __call__(self) -> bool:
        self.tries += 1
        content = self.file.read_text()
        if content == "broken":
            raise InvalidArgument("the key belongs to another")
        if content == "early" and self.waits:
            self.waits -= 1
            return False
        self.taken.append(content)
        return True


@dataclass
class Watched:
    taker: Taker
    registry: CollectorRegistry

    def write(self, content: str) -> None:
        fresh = self.taker.file.with_suffix(".new")
        fresh.write_text(content)
        fresh.replace(self.taker.file)

    def count(self, outcome: str) -> float | None:
        labels = {"use": "services", "outcome": outcome}
        return self.registry.get_sample_value("sluice_certificate_renewals_total", labels)

    @property
    def is_pending(self) -> bool:
        return self.registry.get_sample_value("sluice_certificate_renewal_pending", {"use": "services"}) == 1


@pytest.fixture
async def watched(tmp_path):
    file = tmp_path / "tls.crt"
    file.write_text("first")
    watched = Watched(Taker(file), CollectorRegistry())
    renewals = Renewals(CertificateMetrics(watched.registry), timedelta(milliseconds=5))
    renewals.add("services", [file], signatures([file]), watched.taker)
    task = asyncio.create_task(renewals.watch())
    yield watched
    task.cancel()


async def test_a_changed_file_is_taken_up_once(watched):
    assert watched.count("success") == 0

    watched.write("second")
    await eventually_async(lambda: watched.count("success") == 1)
    watched.write("third")
    await eventually_async(lambda: watched.count("success") == 2)

    assert watched.taker.taken == ["second", "third"]


async def test_a_broken_file_is_warned_of_once_and_the_next_is_taken_up(watched, caplog):
    watched.write("broken")
    await eventually_async(lambda: watched.count("failure") == 1)
    watched.write("second")
    await eventually_async(lambda: watched.count("success") == 1)

    assert caplog.text.count("is refused, the old one stays in use: the key belongs to another") == 1
    assert watched.taker.tries == 2


async def test_what_cannot_be_used_yet_is_tried_until_it_can(watched, caplog):
    watched.taker.waits = 3
    watched.write("early")
    await eventually_async(lambda: watched.taker.taken == ["early"])

    assert watched.taker.tries == 4
    assert caplog.text.count("does the other side run, and trust its authority?") == 1
    assert (watched.count("waiting"), watched.count("success"), watched.count("failure")) == (1, 1, 0)


async def test_what_waits_is_counted_once_for_each_change_and_pends_until_it_is_in_use(watched):
    watched.taker.waits = 1000
    watched.write("early")
    await eventually_async(lambda: watched.taker.tries >= 3)
    assert (watched.count("waiting"), watched.is_pending) == (1, True)

    watched.write("early")
    await eventually_async(lambda: watched.count("waiting") == 2)
    watched.write("second")
    await eventually_async(lambda: watched.count("success") == 1)

    assert not watched.is_pending


async def test_what_is_refused_pends_until_something_sound_takes_its_place(watched):
    watched.write("broken")
    await eventually_async(lambda: watched.count("failure") == 1)
    assert watched.is_pending
    watched.write("second")
    await eventually_async(lambda: watched.count("success") == 1)
    assert not watched.is_pending


async def test_files_that_are_put_back_while_the_new_ones_wait_are_taken_up(watched):
    watched.taker.waits = 1000
    kept = watched.taker.file.rename(watched.taker.file.with_suffix(".kept"))
    watched.write("early")
    await eventually_async(lambda: watched.count("waiting") == 1)

    kept.replace(watched.taker.file)
    await eventually_async(lambda: watched.taker.taken == ["first"])


async def test_a_file_that_is_replaced_just_after_it_was_read_is_taken_up(watched):
    renewals = Renewals(CertificateMetrics(CollectorRegistry()), timedelta(milliseconds=5))
    before = signatures([watched.taker.file])
    watched.write("second")
    taker = Taker(watched.taker.file)

    renewals.add("services", [watched.taker.file], before, taker)
    task = asyncio.create_task(renewals.watch())
    await eventually_async(lambda: taker.taken == ["second"])
    task.cancel()


async def test_a_file_that_is_removed_is_refused_and_its_return_is_seen(watched):
    watched.taker.file.unlink()
    await eventually_async(lambda: watched.count("failure") == 1)
    watched.write("second")
    await eventually_async(lambda: watched.taker.taken == ["second"])
