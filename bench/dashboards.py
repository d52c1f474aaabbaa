"""Every panel of the dashboards over a real load: a split gateway, a real Prometheus, and faults on the way.

The pictures in docs/dashboards are what Grafana would draw: each panel's own query, asked of Prometheus' API.
``python -m bench.dashboards --seconds 90 --into DIR`` takes less time, and leaves those alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.panel_picture import Drawing, Happening, Points, to_picture
from gateway.adapters.job_queue import StateJobQueue
from gateway.domain.job import JobKey, JobKind
from gateway.domain.location import parse_location
from gateway.ports import StorageSettings, utcnow
from tests.deployments import ServerFiles, launch
from tests.observed import chosen, dashboards, panels
from tests.prometheus import Prometheus, running_prometheus
from tests.repository import ROOT
from tests.watched import DIR_TABLES, HASTY, RECIPIENTS, Watched, running_watched
from vendors.local import vendor as local

PICTURES = ROOT / "docs" / "dashboards"
SECONDS = 300.0
SCRAPE = 5
CLIENTS = 4
# Requests of one client in a second: the two cores are also those of the gateway.
PACE = 6.0
_TABLES = (("sales", "orders"), ("geo", "cities"), ("geo", "stations"), ("big", "ten_thousand_files"))
_STARTED = re.compile(r'"worker (\d+) is process (\d+)"')


@dataclass
class Outcome:
    """What was sent, and what came of it."""

    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0

    def __str__(self) -> str:
        answers = ", ".join(f"{count} with {status}" for status, count in sorted(self.statuses.items()))
        return f"{self.statuses.total() + self.lost} requests sent: {answers}; {self.lost} without an answer"


def main(seconds: float = SECONDS, into: Path = PICTURES) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        directory = Path(folder)
        gateway = stack.enter_context(running_watched(directory, replicas=2))
        targets = gateway.targets
        prometheus = stack.enter_context(
            running_prometheus(directory / "prometheus", targets, interval=f"{SCRAPE}s")
        )
        began = time.time()
        with loaded(gateway, seconds) as outcome:
            story = play(gateway, began, seconds)
        print(outcome)
        for alert in sorted(
            {rule["name"] for rule in prometheus.rules() if rule.get("state") in ("pending", "firing")}
        ):
            print(f"alert: {alert}")
        draw(prometheus, Run(began=began, seconds=seconds, story=story), into)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """When it was, and what happened in it."""

    began: float
    seconds: float
    story: Sequence[Happening]


@contextmanager
def loaded(gateway: Watched, seconds: float) -> Iterator[Outcome]:
    """Have clients ask, while the block runs."""
    outcome, end = Outcome(), threading.Event()
    clients = [
        threading.Thread(target=_ask_on, args=(gateway, rng, seconds, outcome, end))
        for rng in map(random.Random, range(CLIENTS))
    ]
    for client in clients:
        client.start()
    try:
        yield outcome
    finally:
        end.set()
        for client in clients:
            client.join()


def _ask_on(
    gateway: Watched, rng: random.Random, seconds: float, outcome: Outcome, end: threading.Event
) -> None:
    began = time.monotonic()
    while not end.wait(rng.expovariate(PACE)):
        try:
            outcome.statuses[_ask(gateway, rng, (time.monotonic() - began) / seconds)] += 1
        except (OSError, EOFError):
            outcome.lost += 1


def _ask(gateway: Watched, rng: random.Random, share: float) -> int:
    """Make one request of those that recipients make, when such a share of the run is over."""
    who = rng.choices([*RECIPIENTS, HASTY], weights=[6, 3, 2, 4])[0]
    # Tables come into use one after the other, so that there is always something to mint.
    tables = DIR_TABLES[: 2 + int(share * (len(DIR_TABLES) - 2))]
    hints = b'{"predicateHints": ["station < %d"]}' % rng.randrange(100)
    schema, table = rng.choice(_TABLES)
    kinds: Mapping[Callable[[], int], int] = {
        lambda: gateway.ask(who, "/shares").status: 3,
        lambda: gateway.ask(who, "/shares/sample/schemas/big/tables/ten_thousand_files/version").status: 2,
        lambda: gateway.query(who, "sales", "customers").status: 3,
        lambda: gateway.query(who, schema, table).status: 3,
        lambda: gateway.query(who, "big", "ten_thousand_files", hints).status: 2,
        lambda: gateway.vend(who, rng.choice(tables)).status: 6,
        lambda: gateway.vend(who, tables[-1]).status: 2,
        lambda: gateway.ask("nobody", "/shares").status: 1,
    }
    return rng.choices(list(kinds), weights=list(kinds.values()))[0]()


def play(gateway: Watched, began: float, seconds: float) -> Sequence[Happening]:
    """Do one thing after the other to the gateway, and return what was done when."""
    asyncio.run(_ask_for_jobs(gateway))
    story = []
    for name, start, end, act in ACTS:
        _until(began + start * seconds)
        print(name, flush=True)
        undo = act(gateway)
        _until(began + end * seconds)
        undo()
        story.append(Happening(name=name, start=start * seconds, end=end * seconds))
    _until(began + seconds)
    return story


def _until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def _without_redis(gateway: Watched) -> Callable[[], None]:
    pid = gateway.redis.process.pid
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def _throttled(gateway: Watched) -> Callable[[], None]:
    gateway.sts.error = "Throttling"

    def undo() -> None:
        gateway.sts.error = ""

    return undo


def _short_lived(gateway: Watched) -> Callable[[], None]:
    gateway.sts.life = timedelta(minutes=5)

    def undo() -> None:
        gateway.sts.life = None

    return undo


def _slow(gateway: Watched) -> Callable[[], None]:
    gateway.sts.delay = timedelta(seconds=1.5)

    def undo() -> None:
        gateway.sts.delay = timedelta(0)

    return undo


def _without_log(gateway: Watched) -> Callable[[], None]:
    (log,) = (gateway.directory / "tables").glob("**/customers/_delta_log")
    aside = log.rename(log.with_name("_aside"))
    # A local storage follows no links, so that this is a log that cannot be listed, and not one that is gone.
    log.symlink_to(aside)

    def undo() -> None:
        log.unlink()
        aside.rename(log)

    return undo


def _without_worker(gateway: Watched) -> Callable[[], None]:
    _, pid = _STARTED.findall(gateway.deployment.edge.log())[0]
    os.kill(int(pid), signal.SIGKILL)
    return lambda: None


def _broken_configuration(gateway: Watched) -> Callable[[], None]:
    file = gateway.deployment.processes["snapshot"].config_file
    text = file.read_text()
    file.write_text("shares: nonsense\n")

    def undo() -> None:
        file.write_text(text)

    return undo


def _without_vending(gateway: Watched) -> Callable[[], None]:
    servers = [server for name, server in gateway.deployment.processes.items() if name.startswith("vending")]
    for server in servers:
        server.stop(signal.SIGKILL)

    def undo() -> None:
        for server in servers:
            # In the same object, whose process is ended with all others.
            files = ServerFiles(server.config_file, server.log_file, server.metrics_url)
            server.process = launch(server.name, files).process

    return undo


def _broken_certificate(gateway: Watched) -> Callable[[], None]:
    file = Path(gateway.deployment.directory / "pki" / "snapshot.pem")
    text = file.read_text()
    file.write_text("nonsense\n")

    def undo() -> None:
        file.write_text(text)

    return undo


def _blocked_landing(gateway: Watched) -> Callable[[], None]:
    landing = gateway.directory / "landing"
    aside = landing.rename(landing.with_name("landing-aside"))
    landing.write_text("in the way\n")

    def undo() -> None:
        landing.unlink()
        aside.rename(landing)

    return undo


# What is done, from which share of the run to which, and how; it returns what puts it right.
ACTS: Sequence[tuple[str, float, float, Callable[[Watched], Callable[[], None]]]] = (
    ("Redis does not answer", 0.08, 0.16, _without_redis),
    ("STS throttles", 0.20, 0.28, _throttled),
    ("STS gives short lives", 0.31, 0.38, _short_lived),
    ("a table's log cannot be listed", 0.41, 0.47, _without_log),
    ("vending is killed", 0.50, 0.58, _without_vending),
    ("a worker of the edge is killed", 0.63, 0.64, _without_worker),
    ("a configuration is broken", 0.67, 0.73, _broken_configuration),
    ("a certificate file is broken", 0.75, 0.81, _broken_certificate),
    ("the landing takes nothing", 0.83, 0.90, _blocked_landing),
    ("STS is slow", 0.93, 0.98, _slow),
)


async def _ask_for_jobs(gateway: Watched) -> None:
    """Leave the worker of the pipeline something to do for a while."""
    directory = gateway.directory / "worker"
    settings = StorageSettings(name="state", prefix=parse_location(str(directory)), public_url="")
    async with local.open(settings) as storage:
        assert storage.open_state is not None
        state = storage.open_state(parse_location(f"{directory}/state"))
        queue = StateJobQueue(state, worker="bench", lease=timedelta(seconds=30), clock=utcnow)
        for number in range(24):
            key = JobKey(kind=JobKind.VIEW, subject=f"view-{number}")
            await queue.request(key, {"sleep": f"{2 + number % 5 * 3}"}, utcnow())


def draw(prometheus: Prometheus, run: Run, into: Path) -> None:
    """Ask Prometheus what every panel asks, and draw the answers."""
    into.mkdir(parents=True, exist_ok=True)
    replicas = _short_names(prometheus)
    for name, board in dashboards().items():
        drawings = [_asked(prometheus, panel, board, run, replicas) for panel in panels(board)]
        rows = [panel for panel in board["panels"] if panel["type"] == "row"]
        (into / f"{name}.svg").write_text(to_picture(board["title"], rows, drawings, run.story, run.seconds))
        empty = [drawing.panel["title"] for drawing in drawings if not drawing.series]
        print(
            f"{name}: {len(drawings)} panels" + (f", nothing to show in {', '.join(empty)}" if empty else "")
        )


def _short_names(prometheus: Prometheus) -> Mapping[str, str]:
    """Return names for the addresses of replicas, which are others in every run."""
    names: dict[str, str] = {}
    for target in sorted(
        prometheus.targets(), key=lambda target: (target["scrapePool"], target["scrapeUrl"])
    ):
        job = target["labels"]["job"].removeprefix("sluice-")
        number = sum(name.startswith(f"{job}-") for name in names.values())
        names[target["labels"]["instance"]] = f"{job}-{number}"
    return names


def _asked(
    prometheus: Prometheus,
    panel: Mapping[str, Any],
    board: Mapping[str, Any],
    run: Run,
    replicas: Mapping[str, str],
) -> Drawing:
    series: dict[str, Points] = {}
    for target in panel["targets"]:
        # As Grafana has it: four scrapes at least.
        expr = chosen(target["expr"], board, rate_interval=f"{4 * SCRAPE}s")
        for found in prometheus.query_range(expr, run.began, run.began + run.seconds, SCRAPE):
            points = [
                (at - run.began, float(value))
                for at, value in found["values"]
                if value not in ("NaN", "+Inf")
            ]
            if points:
                series[_name(target["legendFormat"], found["metric"], replicas)] = points
    # What is more than nothing comes first: there is room for few names.
    ordered = sorted(series.items(), key=lambda one: (not any(value for _, value in one[1]), one[0]))
    return Drawing(panel=panel, series=dict(ordered))


def _name(legend: str, labels: Mapping[str, str], replicas: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        found = labels.get(match[1], "")
        return replicas.get(found, found)

    return re.sub(r"\{\{(\w+)\}\}", value, legend)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--into", type=Path, default=PICTURES)
    main(**vars(parser.parse_args()))
