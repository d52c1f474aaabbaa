"""The fixed sample of mutants: drawn once from a seed, kept in sample.json, located again in any tree."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.mutants.operators import Site, SourceFile

SAMPLE: Final = Path(__file__).with_name("sample.json")
_ROOTS: Final = ("gateway", "vendors", "recipient/src/sluice_recipient")
# Generated code, and a demo that serves no recipient.
_LEFT_OUT: Final = ("gateway/v1/", "gateway/demo/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mutation site of a file; found again when lines move, stale when its function changes."""

    file: str
    scope: str
    fingerprint: str
    operator: str
    ordinal: int
    before: str
    after: str

    @property
    def id(self) -> str:
        facts = (self.file, self.scope, self.fingerprint, self.operator, str(self.ordinal))
        return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:8]

    @property
    def package(self) -> str:
        return package_of(self.file)

    def locate(self, source: SourceFile) -> Site | None:
        """Return the site in a file; None if the mutant is stale."""
        key = self.scope, self.fingerprint, self.operator, self.ordinal
        return next((site for site in source.sites if site.key == key), None)


def package_of(file: str) -> str:
    """Return the package that a file is counted under: `gateway/edge`, `vendors/aws`, `recipient`."""
    parts = file.split("/")
    if parts[0] == "recipient":
        return parts[0]
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def load() -> list[Mutant]:
    return [Mutant(**entry) for entry in json.loads(SAMPLE.read_text(encoding="utf-8"))]


def save(mutants: Sequence[Mutant]) -> None:
    lines = ",\n".join(json.dumps(asdict(mutant)) for mutant in mutants)
    SAMPLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def draw(tree: Path, count: int, seed: int) -> list[Mutant]:
    """Draw mutants, each package in proportion to its statements, and at most one of a function."""
    sources = {file: SourceFile((tree / file).read_text(encoding="utf-8")) for file in _product_files(tree)}
    statements: defaultdict[str, int] = defaultdict(int)
    for file, source in sources.items():
        statements[package_of(file)] += source.statements
    generator = random.Random(seed)
    drawn: list[Mutant] = []
    for package, share in sorted(_apportion(statements, count).items()):
        files = {file: source for file, source in sources.items() if package_of(file) == package}
        drawn += _draw_from(files, share, generator)
    return sorted(drawn, key=lambda mutant: (mutant.file, mutant.scope, mutant.operator, mutant.ordinal))


def _product_files(tree: Path) -> Iterable[str]:
    for root in _ROOTS:
        for path in sorted((tree / root).rglob("*.py")):
            file = path.relative_to(tree).as_posix()
            if not file.startswith(_LEFT_OUT):
                yield file


def _apportion(weights: dict[str, int], count: int) -> dict[str, int]:
    """Distribute `count` by largest remainder."""
    total = sum(weights.values())
    shares = {name: count * weight // total for name, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda name: (-(count * weights[name] % total), name))
    for name in by_remainder[: count - sum(shares.values())]:
        shares[name] += 1
    return shares


def _draw_from(files: dict[str, SourceFile], count: int, generator: random.Random) -> list[Mutant]:
    """Draw anchors by their number of sites, then an operator, then a site, so that no operator prevails."""
    anchors: defaultdict[tuple[str, str, str], list[Site]] = defaultdict(list)
    for file, source in files.items():
        for site in source.sites:
            anchors[file, site.scope, site.fingerprint].append(site)
    # Weighted sampling without replacement (Efraimidis and Spirakis).
    ranked = sorted(
        anchors, key=lambda anchor: generator.random() ** (1 / len(anchors[anchor])), reverse=True
    )
    drawn = []
    for file, scope, fingerprint in ranked[:count]:
        sites = anchors[file, scope, fingerprint]
        operator = generator.choice(sorted({site.operator for site in sites}))
        site = generator.choice([site for site in sites if site.operator == operator])
        drawn.append(
            Mutant(
                file=file,
                scope=scope,
                fingerprint=fingerprint,
                operator=operator,
                ordinal=site.ordinal,
                before=_shorten(site.before),
                after=_shorten(site.after),
            )
        )
    return drawn


def _shorten(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."
