"""Branch coverage of each lane and package, as a table and as JSON, and what differs from an earlier report.

    python deploy/dev/coverage_report.py FOLDER [--tree CHECKOUT] [--against REPORT]

FOLDER is what `deploy/dev/lanes.py --coverage FOLDER` has written: a folder for each lane.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import coverage

ROOT: Final = Path(__file__).resolve().parent.parent.parent
# Percentage points; random tests execute a few branches more or less in each run.
TOLERANCE: Final = 0.5
# These packages are reported by the packages in them.
SPLIT: Final = frozenset({"gateway", "gateway/services", "gateway/adapters", "vendors"})
# A lane's covered branches and all branches of each package.
Branches = dict[str, dict[str, tuple[int, int]]]


def main() -> int:
    arguments = parse_arguments()
    # Before the report is written, which may be the same file.
    before = json.loads(arguments.against.read_text()) if arguments.against else None
    report = measure(arguments.folder, arguments.tree)
    (arguments.folder / "report.json").write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")
    say(table(report))
    if before is None:
        return 0
    lower = list(compare(before, report))
    say(f"\nmore than {TOLERANCE} points lower than in {arguments.against}: {len(lower)}")
    say("\n".join(lower))
    return 1 if lower else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Report branch coverage by lane and package.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose tests ran")
    parser.add_argument("--against", type=Path, help="the report.json to compare with")
    return parser.parse_args()


def measure(folder: Path, tree: Path) -> Branches:
    """Return the branches of all lanes, and of the lanes together as `all`."""
    lanes = sorted(path for path in folder.iterdir() if path.is_dir())
    report = {lane.name: dict(branches_of([lane], tree)) for lane in lanes}
    return {**report, "all": dict(branches_of(lanes, tree))}


def branches_of(lanes: list[Path], tree: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    with tempfile.TemporaryDirectory() as scratch:
        data_file, output = Path(scratch, "data"), Path(scratch, "coverage.json")
        measured = coverage.Coverage(data_file=str(data_file), config_file=False, branch=True)
        measured.combine([str(lane) for lane in lanes], strict=True, keep=True)
        # A template that a test renders, say, has no source to read.
        measured.json_report(outfile=str(output), ignore_errors=True, include=[f"{tree.resolve()}/*"])
        files = json.loads(output.read_text())["files"]
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file, facts in files.items():
        package = package_of(Path(file).resolve().relative_to(tree.resolve()))
        counts[package][0] += facts["summary"]["covered_branches"]
        counts[package][1] += facts["summary"]["num_branches"]
    return iter((package, (covered, total)) for package, (covered, total) in sorted(counts.items()) if total)


def package_of(file: Path) -> str:
    package = Path(file.parts[0])
    for part in file.parts[1:-1]:
        if package.as_posix() not in SPLIT:
            break
        package /= part
    return package.as_posix()


def compare(before: Branches, after: Branches) -> Iterator[str]:
    """Describe the packages of each lane whose coverage is lower than before by more than the tolerance."""
    for lane, packages in before.items():
        for package, counts in packages.items():
            was, now = percent(counts), percent(after.get(lane, {}).get(package, (0, 0)))
            if now < was - TOLERANCE:
                yield f"{lane} {package}: {was:.1f} % before, {now:.1f} % now"


def table(report: Branches) -> str:
    lanes = list(report)
    packages = sorted({package for each in report.values() for package in each})
    rows = [["branch coverage, %", *lanes]]
    for package in packages:
        cells = [report[lane].get(package) for lane in lanes]
        rows.append([package, *(f"{percent(cell):.1f}" if cell else "-" for cell in cells)])
    width = max(map(len, packages), default=0) + 2
    return "\n".join(
        f"{name:<{max(width, len(rows[0][0]) + 2)}}" + "".join(f"{cell:>12}" for cell in cells)
        for name, *cells in rows
    )


def percent(counts: tuple[int, int]) -> float:
    covered, total = counts
    return 100 * covered / total if total else 0.0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
