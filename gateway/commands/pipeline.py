"""``sluice pipeline``: run the jobs on Spark, here or as a worker, and see what they do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any, Final

from gateway.bootstrap.work import WorkGiven
from gateway.commands.config_argument import add_config_argument
from gateway.commands.fault_list import list_faults
from gateway.commands.pipelining.actions import Actions
from gateway.config.faults import ConfigError
from gateway.domain.job import JobKind

_EPILOG: Final = """\
run one job now, on this machine or on the Spark that pipeline.spark names:
  sluice pipeline usage --config server.yaml
  sluice pipeline index share.schema.table --config server.yaml
  sluice pipeline view share.schema.view --recipient acme --config server.yaml

let workers do what is asked for and what is due; start as many as you like, anywhere:
  sluice pipeline worker --config server.yaml
  sluice pipeline worker --once --config server.yaml    (for cron)

look:
  sluice pipeline jobs --config server.yaml
  sluice pipeline plan usage --config server.yaml > plan.json
  spark-submit pipeline/jobs/usage.py plan.json

The gateway itself never starts Spark. Jobs need PySpark and Java; what is shared by all processes lies in
state.location.
"""
_STATUS: Final = """\
exit status:
  0  it was done, or there was nothing to do
  1  a job failed, or something that it needs is missing
  2  the configuration has faults, or wrong usage
"""
_NAMED: Final = {
    JobKind.INDEX: ("TABLE", "the table, as share.schema.table"),
    JobKind.VIEW: ("NAME", "the view, as share.schema.view"),
}
_HELP: Final = {
    JobKind.USAGE: "bring the tables of usage up to date",
    JobKind.INDEX: "index the log of a table",
    JobKind.VIEW: "refresh what a view shows",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for kind in JobKind:
        _add_job(actions, kind, Actions.run_job)
    worker = _add(actions, "worker", "claim jobs and run them, until asked to stop", Actions.work)
    worker.add_argument("--once", action="store_true", help="end when nothing is left to do")
    worker.add_argument(
        "--metrics", metavar="HOST:PORT", help="where to serve metrics and health, instead of metrics.listen"
    )
    plan = _add(actions, "plan", "print what a job would do, as spark-submit takes it, without secrets", None)
    kinds = plan.add_subparsers(title="jobs", metavar="JOB", required=True)
    for kind in JobKind:
        _add_job(kinds, kind, Actions.print_plan)
    kinds.choices[JobKind.USAGE].add_argument(
        "--continuous",
        metavar="SECONDS",
        type=_seconds,
        help="a job that stays, and takes up what has landed so often",
    )
    jobs = _add(actions, "jobs", "list what is queued, running, done and failed", Actions.list_jobs)
    jobs.add_argument(
        "--format", choices=["table", "json"], default="table", help="how to print it (default: table)"
    )


def run(args: argparse.Namespace, env: Mapping[str, str]) -> int:
    try:
        status: int = args.act(Actions(WorkGiven(env=env)), args)
    except ConfigError as exc:
        if args.config is None or not args.config.exists():
            raise
        print(*list_faults(args.config, exc.faults), sep="\n", file=sys.stderr)
        return 2
    return status


def _seconds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, 1 or more")
    return int(text)


def _add(actions: Any, name: str, help_: str, act: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=help_,
        description=f"{help_[0].upper()}{help_[1:]}.",
        epilog=_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if act is not None:
        add_config_argument(parser, "the configuration, the gateway's own")
        parser.set_defaults(act=act)
    return parser


def _add_job(actions: Any, kind: JobKind, act: Any) -> None:
    parser = _add(actions, kind, _HELP[kind], act)
    parser.set_defaults(kind=kind, name="", recipient="", continuous=None)
    if kind in _NAMED:
        metavar, help_ = _NAMED[kind]
        parser.add_argument("name", metavar=metavar, help=help_)
    if kind is JobKind.VIEW:
        parser.add_argument(
            "--recipient", metavar="R", default="", help="as this recipient is shown it; left out: for all"
        )
