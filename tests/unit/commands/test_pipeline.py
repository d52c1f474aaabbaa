from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.bootstrap.work import WorkGiven
from gateway.commands import dispatch
from gateway.commands.pipeline import configure
from gateway.commands.pipelining.actions import Actions
from gateway.commands.pipelining.by_hand import title
from gateway.commands.pipelining.needs import check_needs
from gateway.config.schema import Config
from gateway.domain.job import JobKey, JobKind
from gateway.domain.location import parse_location
from gateway.errors import InvalidArgument, NotFound, Unavailable, Unsupported
from gateway.work.craft import Plan, Wanted
from tests.fakes import runner_script
from tests.fakes.craft import FakeCraft

RUNNER = [sys.executable, str(Path(runner_script.__file__))]
CONFIG = """\
allowAnonymous: true
stateDir: %s
storages:
- name: lake
  prefix: s3://lake
  vendor: s3
  options:
    profile: minio
    endpoint: http://127.0.0.1:1
    identity: {kind: keys, accessKeyId: AKIA, secretAccessKey: {value: hunter2hunter2}}
pipeline:
  spark:
    conf: {spark.driver.memory: 1g, spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net: hunter2hunter2}
"""


class Bench:
    """The command, on crafts that a test steers and a runner without Spark."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "server.yaml"
        self.file.write_text(CONFIG % directory)
        self.view = FakeCraft(JobKind.VIEW)
        self.view.next_plan = Plan(body={"echo": "x"})
        self.crafts: dict[JobKind, FakeCraft] = {JobKind.VIEW: self.view}

    def run(self, *arguments: str) -> int:
        parser = argparse.ArgumentParser()
        configure(parser)
        args = parser.parse_args([*arguments, "--config", str(self.file)])
        env = {"PATH": os.environ["PATH"], "SLUICE_LOG_LEVEL": "error"}
        given = WorkGiven(env=env, runner=RUNNER, build=lambda _: self.crafts)
        status: int = args.act(Actions(given, check=lambda *_: None), args)
        return status


@pytest.fixture
def bench(tmp_path) -> Iterator[Bench]:
    """The command takes over the signals and the log of its process, which is that of all tests."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    root = logging.getLogger()
    level, logged = root.level, list(root.handlers)
    yield Bench(tmp_path)
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
    root.handlers[:] = logged
    root.setLevel(level)


def test_job_is_run_here_and_summed_up(bench, capsys):
    assert bench.run("view", "sales.eu.orders", "--recipient", "acme") == 0

    printed = capsys.readouterr()
    assert "view sales.eu.orders for acme  done" in printed.out
    assert "echo: x" in printed.out
    assert "starts" in printed.err
    assert bench.view.planned[0].parameters == {"name": "sales.eu.orders", "recipient": "acme"}
    assert len(bench.view.published) == 1
    assert not any(name.startswith("SLUICE_") for name in bench.view.published[0][1]["env"])


def test_job_without_anything_to_do_says_so(bench, capsys):
    bench.view.next_plan = None

    assert bench.run("view", "orders") == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize(("retry", "outcome"), [(True, "retried"), (False, "failed")])
def test_job_that_fails_says_why_and_what_next(bench, capsys, retry, outcome):
    bench.view.next_plan = Plan(body={"error": "no such column", "retry": retry})

    assert bench.run("view", "orders") == 1
    printed = capsys.readouterr().out
    assert outcome in printed
    assert "view orders: no such column" in printed
    assert ("run this command again" in printed) is retry


def test_name_that_nothing_has_is_told(bench):
    with pytest.raises(NotFound):
        bench.run("view", "unknown")


def test_kind_that_the_configuration_has_not_is_told(bench):
    with pytest.raises(Unsupported, match="no jobs of the kind usage"):
        bench.run("usage")


def test_plan_of_a_job_that_stays_says_how_often_it_looks(bench, capsys):
    bench.crafts[JobKind.USAGE] = bench.view
    bench.view.next_plan = Plan(body={"landing_url": "file:/landing", "continuous_seconds": None})

    assert bench.run("plan", "usage", "--continuous", "60") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["continuous_seconds"] == 60


@pytest.mark.parametrize("given", ["0", "-1", "1m", "1.5", ""])
def test_what_is_no_number_of_seconds_is_told(bench, capsys, given):
    with pytest.raises(SystemExit):
        bench.run("plan", "usage", f"--continuous={given}")
    assert "is no number of seconds, 1 or more" in capsys.readouterr().err


def test_plan_is_printed_without_secrets(bench, capsys):
    bench.view.next_plan = Plan(body={"query": "SELECT 1"}, locations=(parse_location("s3://lake/t"),))

    assert bench.run("plan", "view", "orders") == 0
    printed = capsys.readouterr().out
    order = json.loads(printed)
    assert (order["job"], order["plan"]) == ("view", {"query": "SELECT 1"})
    assert order["access"]["fs.s3a.bucket.lake.endpoint"] == "http://127.0.0.1:1"
    assert order["spark"]["conf"] == {"spark.driver.memory": "1g"}
    assert "hunter2" not in printed
    assert "credentials.provider" not in printed
    assert bench.view.published == []


def test_plan_of_nothing_is_nothing(bench, capsys):
    bench.view.next_plan = None

    assert bench.run("plan", "view", "orders") == 0
    printed = capsys.readouterr()
    assert (printed.out, "nothing to do" in printed.err) == ("", True)


def test_plan_is_of_one_job(bench):
    named = bench.view.named
    bench.view.named = lambda name, recipient="": [*named(name, "a"), *named(name, "b")]

    with pytest.raises(InvalidArgument, match="orders stands for 2 jobs"):
        bench.run("plan", "view", "orders")


def test_jobs_are_listed(bench, capsys):
    assert bench.run("jobs") == 0
    assert capsys.readouterr().out == "no job was ever asked for\n"
    bench.view.next_plan = Plan(body={"error": "no such column\n" + "x" * 100, "retry": False})
    bench.run("view", "bad")
    bench.view.next_plan = Plan(body={})
    bench.run("view", "good")
    capsys.readouterr()

    assert bench.run("jobs") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "job",
        "state",
        "asked",
        "for",
        "began",
        "ended",
        "attempts",
        "worker",
        "error",
    ]
    assert [line.split()[:3] for line in lines[2:]] == [["view", "good", "done"], ["view", "bad", "failed"]]
    assert bench.run("jobs", "--format", "json") == 0
    assert {job["state"] for job in json.loads(capsys.readouterr().out)} == {"done", "failed"}


def test_names_and_errors_of_jobs_cannot_move_the_cursor(bench, capsys):
    bench.view.next_plan = Plan(body={"error": "no \x1b[31m\ncolumn \x9b", "retry": False})
    bench.run("view", "orders\x1b[2J")
    bench.run("jobs")

    printed = capsys.readouterr()
    assert not set("\x1b\x9b") & set(printed.out + printed.err)
    assert "view orders\ufffd[2J: no \ufffd[31m column \ufffd" in printed.out


def test_view_is_called_by_its_name_and_for_whom_it_is_made():
    names = {"share": "demo", "schema": "views", "view": "sample"}
    key = JobKey(kind=JobKind.VIEW, subject="0a1b")
    assert title(Wanted(key=key, parameters=names | {"recipient": "ann"})) == "view demo.views.sample for ann"
    assert title(Wanted(key=key, parameters=names | {"recipient": ""})) == "view demo.views.sample"
    assert title(Wanted(key=JobKey(kind=JobKind.USAGE))) == "usage"


def test_json_of_jobs_and_plans_cannot_move_the_cursor(bench, capsys):
    name = "or\x9bd\x7f\u202eers"
    bench.view.next_plan = Plan(body={"error": name, "retry": False, "name": name})
    bench.run("view", name)
    capsys.readouterr()

    for command in (["jobs", "--format", "json"], ["plan", "view", name]):
        assert bench.run(*command) == 0
        printed = capsys.readouterr().out
        assert all(letter.isascii() and letter.isprintable() for letter in printed.replace("\n", ""))
        assert repr(name)[1:-1] in str(json.loads(printed))


def test_worker_that_works_once_does_what_is_queued_and_ends(bench):
    bench.view.next_plan = Plan(body={"error": "later", "retry": True})
    bench.run("view", "orders")

    # It waits after its failure, so there is nothing to do now.
    assert bench.run("worker", "--once") == 0
    assert bench.view.published == []


@pytest.mark.parametrize(
    "arguments", [[], ["usage"], ["index"], ["view"], ["worker"], ["plan"], ["plan", "view"], ["jobs"]]
)
def test_every_action_has_a_help(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["pipeline", *arguments, "--help"], {})

    assert left.value.code == 0
    assert "usage: sluice pipeline" in capsys.readouterr().out


def test_configuration_is_needed(capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["pipeline", "usage"], {})

    assert left.value.code == 2
    assert "give --config FILE" in capsys.readouterr().err


def test_faults_of_the_configuration_are_listed(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text("pipeline: {leaseTime: 1s}\nallowAnonymous: true\n")

    assert dispatch(["pipeline", "jobs", "--config", str(file)], {}) == 2
    assert "pipeline.leaseTime" in capsys.readouterr().err


def test_machine_without_java_is_told_what_to_install(tmp_path):
    with pytest.raises(Unavailable, match="no Java"):
        check_needs(Config(), {"PATH": str(tmp_path)})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    check_needs(Config(), {"PATH": "", "JAVA_HOME": str(tmp_path)})
    check_needs(Config(pipeline={"spark": {"remote": "sc://spark:15002"}}), {"PATH": ""})
