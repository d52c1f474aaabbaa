"""Audit events into the tables of usage: how many a second, and how that grows with cores.

The job runs as it does in production: from segments on disk by way of its checkpoint into all of its tables,
in a process of its own for each round, with one core and with two. A first run over a few events warms it up
and is not counted. The peer reads the same lines and adds up the same counts by day, recipient, table and
operation in one process with polars, which keeps nothing else: no events, no ledger, no checkpoint. So the
ratio says what all of that costs, and not which engine is quicker.

    python -m bench.usage_events [EVENTS [ROUNDS]]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.machine import describe_machine
from gateway.adapters.audit_log import to_line
from gateway.domain.audit import AuditEvent, AuditKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Few enough for some minutes on two cores that others use too; more, and more rounds, by arguments.
EVENTS = 60_000
SEGMENTS = 12
WARM_UP = 2_000
ROUNDS = 1
CORES = (1, 2)
RESULTS = Path(__file__).parent / "results"
_START = datetime(2026, 11, 16, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds by the clock, and of processors."""

    wall: float
    cpu: float


def main(events: int = EVENTS, rounds: int = ROUNDS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        size = write_landing(scratch / "landing", events)
        write_landing(scratch / "warm", WARM_UP, seed=2)
        taken: dict[str, list[Taken]] = {}
        for number in range(rounds):
            cases = [f"Spark, {cores} core{'s' * (cores > 1)}" for cores in CORES]
            for cores, name in zip(CORES, cases, strict=True):
                spent = _run_job(scratch, f"{number}-{cores}", cores)
                taken.setdefault(name, []).append(spent)
                print(f"{name}: {spent.wall:.1f} s, {events / spent.wall:,.0f} events a second", flush=True)
            for threads in CORES:
                name = f"polars, {threads} thread{'s' * (threads > 1)}"
                taken.setdefault(name, []).append(_run_peer(scratch, threads))
    _report(taken, events, size, rounds)


def write_landing(directory: Path, events: int, seed: int = 1) -> int:
    """Write segments of requests of two days, as a gateway tells of them; return their size."""
    random = Random(seed)  # noqa: S311 -- made-up figures
    day = directory / "2026-11-16"
    day.mkdir(parents=True)
    written = 0
    for segment in range(SEGMENTS):
        lines = b"".join(_lines(random, events // SEGMENTS))
        (day / f"audit-host-{seed}-20261116T000000000000Z-{segment:06d}.jsonl").write_bytes(lines)
        written += len(lines)
    return written


def _lines(random: Random, count: int) -> list[bytes]:
    lines: list[bytes] = []
    while len(lines) < count:
        at = _START + timedelta(seconds=random.random() * 2 * 86_400)
        facts: dict[str, Any] = {
            "principal": f"recipient-{random.randrange(100)}",
            "share": "sales",
            "schema": "eu",
            "table": f"table-{random.randrange(200)}",
            "table_id": "0b2f4c9a-0000-4000-8000-000000000001",
            "request_id": f"{random.getrandbits(128):032x}",
            "remote": f"10.0.{random.randrange(9)}.7",
            "user_agent": "delta-sharing-python/1.4.2 pandas/2.2 python/3.11",
        }
        lines += [to_line(event, "host-1") for event in _request(random, at, facts)]
    return lines[:count]


def _request(random: Random, at: datetime, facts: Mapping[str, Any]) -> list[AuditEvent]:
    def event(kind: AuditKind, operation: str, outcome: str = "OK", **more: Any) -> AuditEvent:
        return AuditEvent(
            id=f"{random.getrandbits(128):032x}",
            at=at,
            kind=kind,
            operation=operation,
            outcome=outcome,
            duration_ms=random.randrange(400),
            **facts,
            **more,
        )

    given: dict[str, Any] = {"locations": ("s3://lake/orders",), "expires_at": at + timedelta(hours=1)}
    kind = random.random()
    if kind < 0.45:
        files = random.randrange(1000)
        grant = event(AuditKind.GRANT, "queryTable", mode="url", files=100, file_bytes=10**8, **given)
        return [grant, event(AuditKind.REQUEST, "queryTable", files=files, file_bytes=files * 10**6)]
    if kind < 0.75:
        operation = "generateTemporaryTableCredentials"
        return [event(AuditKind.GRANT, operation, mode="dir", credential_id="ASIA0123456789", **given)]
    if kind < 0.95:
        return [event(AuditKind.REQUEST, "getTableMetadata")]
    return [event(AuditKind.DENIAL, "queryTable", "RESOURCE_DOES_NOT_EXIST")]


def _run_job(scratch: Path, name: str, cores: int) -> Taken:
    """Run the job in a process of its own, and return what it took once it was warm."""
    command = [sys.executable, "-m", "bench.usage_events", "--job", str(scratch), name, str(cores)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment())
    return Taken(*map(float, done.stdout.split()[-2:]))


def _run_peer(scratch: Path, threads: int) -> Taken:
    command = [sys.executable, "-m", "bench.usage_events", "--peer", str(scratch)]
    env = _environment() | {"POLARS_MAX_THREADS": str(threads)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return Taken(*map(float, done.stdout.split()[-2:]))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": sys.executable}


def _job(scratch: Path, name: str, cores: int) -> None:
    from pipeline.jobs.usage import run  # noqa: PLC0415 -- only this process needs Spark
    from pipeline.session import SparkSettings, open_session  # noqa: PLC0415

    conf = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(cores * 2),
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    spark = open_session(SparkSettings(master=f"local[{cores}]", conf=conf))
    warm = {"landing_url": f"file:{scratch}/warm", "location_url": f"file:{scratch}/{name}-warm"}
    run(spark, warm, lambda *_: None)
    began, spent = time.perf_counter(), _processor_seconds(spark)
    plan = {"landing_url": f"file:{scratch}/landing", "location_url": f"file:{scratch}/{name}"}
    result = run(spark, plan, lambda *_: None)
    wall, cpu = time.perf_counter() - began, _processor_seconds(spark) - spent
    assert result["quarantined"] == 0
    assert result["events"] == result["lines"]
    sys.stdout.write(f"\n{wall} {cpu}\n")
    sys.stdout.flush()


def _processor_seconds(spark: SparkSession) -> float:
    """Return what this process and its JVM have taken of the machine's cores."""
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001 -- nobody else knows
    # Behind the name, which may hold anything: user and system time are the 12th and 13th field.
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def _peer(scratch: Path) -> None:
    import polars as pl  # noqa: PLC0415 -- only this process needs it

    began = time.perf_counter()
    # The same types, and an event once; a grant that something closes is told by its request.
    events = pl.scan_ndjson(scratch / "landing" / "*" / "*.jsonl", infer_schema_length=2000)
    events = events.unique("id").with_columns(pl.col("at").str.to_datetime("%+", time_zone="UTC"))
    same = ["replica", "request_id", "operation", "principal", "share", "schema", "table"]
    closed = (pl.col("kind") != "grant").any().over(same)
    counts = (pl.col("kind") != "grant") | ~closed
    keys = [pl.col("at").dt.date().alias("day"), "principal", "share", "schema", "table", "operation"]
    daily = (
        events.with_columns(counts.alias("counts"))
        .group_by(keys)
        .agg(
            pl.col("counts").sum().alias("requests"),
            pl.col("files").filter("counts").sum(),
            pl.col("file_bytes").filter("counts").sum(),
            (pl.col("kind") == "denial").sum().alias("denials"),
            pl.col("duration_ms").filter("counts").quantile(0.5).alias("p50_ms"),
            pl.col("duration_ms").filter("counts").quantile(0.99).alias("p99_ms"),
        )
    )
    daily.collect().write_parquet(scratch / "peer.parquet")
    sys.stdout.write(f"\n{time.perf_counter() - began} {time.process_time()}\n")
    sys.stdout.flush()


def _report(taken: Mapping[str, list[Taken]], events: int, size: int, rounds: int) -> None:
    wall = {name: median(one.wall for one in all_of) for name, all_of in taken.items()}
    cpu = {name: median(one.cpu for one in all_of) for name, all_of in taken.items()}
    one, two = (wall[name] for name in wall if name.startswith("Spark"))
    lines = [
        "# Events into usage",
        "",
        f"{describe_machine()}, load {os.getloadavg()[1]:.0f} besides; {_rounds(rounds)}. "
        f"{events:,} events of two days "
        f"({size / 1e6:,.0f} MB in {SEGMENTS} segments) into `events`, `usage_daily`, `usage_hourly`, "
        "`network_daily`, `credential_ledger` and `anomalies`; the peer reads the same lines and adds up "
        "`usage_daily` alone, once, and keeps nothing else.",
        "",
        "| | by the clock | processor time | events a second | of processor time | against one core |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {seconds:.1f} s | {cpu[name]:.1f} s | {events / seconds:,.0f} "
            f"| {events / cpu[name]:,.0f} | {one / seconds:.2f} |"
            for name, seconds in wall.items()
        ),
        "",
        f"From one core to two: {one / two:.2f} times as many.",
    ]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "usage_events.md").write_text(text)
    seconds = {name: [asdict(one) for one in all_of] for name, all_of in taken.items()}
    figures = {"events": events, "bytes": size, "seconds": seconds}
    (RESULTS / "usage_events.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(text)


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"median of {count} rounds"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        _job(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    elif sys.argv[1:2] == ["--peer"]:
        _peer(Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:]))
