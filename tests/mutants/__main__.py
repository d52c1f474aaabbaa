"""`python -m tests.mutants run|summary|compare|sample`; see CONTRIBUTING.md, "Mutation testing"."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.mutants import sample
from tests.mutants.recording import Recording, record
from tests.mutants.results import Results, compare, describe, summarise
from tests.mutants.runner import Runner, find_stale

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".mutants"


def main() -> int:
    arguments = _parse()
    if arguments.command == "sample":
        mutants = sample.draw(_ROOT, arguments.count, arguments.seed)
        sample.save(mutants)
        _print(f"{len(mutants)} mutants drawn with seed {arguments.seed}: {sample.SAMPLE.relative_to(_ROOT)}")
        return 0
    mutants = sample.load()
    if arguments.command == "compare":
        old, new = (Results(_results_path(label)).by_id for label in arguments.labels)
        _print(*compare(mutants, old, new))
        return 0
    if arguments.command == "run":
        mutants = _run(arguments, mutants)
    _print(*summarise(mutants, Results(_results_path(arguments.label)).by_id))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the mutants that have no result yet, then print the summary")
    run.add_argument("--tree", type=Path, default=_ROOT, help="a checkout whose product and tests are run")
    run.add_argument("-j", dest="processes", type=int, default=2, help="mutants at a time")
    run.add_argument("--fresh", action="store_true", help="record coverage again and drop the results")
    run.add_argument("--only", nargs="+", metavar="ID", help="run these mutants, even if they have a result")
    run.add_argument("--limit", type=int, help="run at most this many mutants")
    summary = commands.add_parser("summary", help="print the summary of a run")
    for command in (run, summary):
        command.add_argument("--label", default="new", help="the name of the run, for its files in .mutants/")
    commands.add_parser("compare", help="print what one run kills and another does not").add_argument(
        "labels", nargs=2
    )
    draw = commands.add_parser("sample", help="draw a new sample from this tree")
    draw.add_argument("--count", type=int, default=240)
    draw.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _run(arguments: argparse.Namespace, mutants: list[sample.Mutant]) -> list[sample.Mutant]:
    """Run what is left of the sample and return it without its stale mutants."""
    tree = arguments.tree.resolve()
    recorded = _FOLDER / f"coverage-{arguments.label}"
    if arguments.fresh:
        shutil.rmtree(recorded, ignore_errors=True)
        _results_path(arguments.label).unlink(missing_ok=True)
    if not (recorded / "tests.json").exists():
        _print(f"recording the coverage of the fast lane in {recorded.relative_to(_ROOT)}")
        record(tree, recorded)
    stale = find_stale(tree, mutants)
    for mutant in stale:
        _print(f"stale, not counted: {mutant.file} {mutant.scope} {mutant.operator} {mutant.ordinal}")
    if stale:
        _print("stale mutants: their code has changed; `python -m tests.mutants sample` draws a new sample")
    current = [mutant for mutant in mutants if mutant not in stale]
    results = Results(_results_path(arguments.label))
    if arguments.only:
        pending = [mutant for mutant in current if mutant.id in arguments.only]
    else:
        pending = [mutant for mutant in current if not results.is_done(mutant)]
    _run_all(
        Runner(tree, Recording(tree, recorded), arguments.processes), pending[: arguments.limit], results
    )
    return current


def _run_all(runner: Runner, mutants: list[sample.Mutant], results: Results) -> None:
    by_id = {mutant.id: mutant for mutant in mutants}
    start = time.monotonic()
    kills = 0
    for count, result in enumerate(runner.run(mutants), 1):
        results.add(result)
        kills += result.outcome.is_kill
        left = (time.monotonic() - start) / count * (len(mutants) - count) / 60
        progress = f"{count}/{len(mutants)}, {kills} killed, {count - kills} not, {left:.0f} min left"
        _print(f"[{progress}] {result.outcome} in {result.seconds} s: {describe(by_id[result.id], result)}")


def _results_path(label: str) -> Path:
    return _FOLDER / f"results-{label}.jsonl"


def _print(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
