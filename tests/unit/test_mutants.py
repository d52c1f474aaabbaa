"""The mutation tool: its operators, its sample, and a run of a small tree."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.cases import each_case
from tests.mutants import sample
from tests.mutants.operators import SourceFile
from tests.mutants.recording import Recording, record
from tests.mutants.results import MutantStatus, Result, Results, compare, summarise
from tests.mutants.runner import Runner, find_stale
from tests.mutants.sample import Mutant

_MUTATIONS = {
    "a < b": {("comparison", "a <= b")},
    "a == b": {("comparison", "a != b")},
    "a in b": {("comparison", "a not in b")},
    "a is None": {("comparison", "a is not None")},
    "a < b < c": {("comparison", "a <= b < c"), ("comparison", "a < b <= c")},
    "a and b": {("boolean", "a or b")},
    "not a": {("negation", "a")},
    "a + b": {("arithmetic", "a - b")},
    "a += b": {("arithmetic", "a -= b")},
    "[a] + b": set(),
    "a[7]": {("integer", "8")},
    "a[True]": set(),
    "a['b']": {("string", "''")},
    "Mapping['b', 'c']": set(),
    "a if b else c": {("condition", "True"), ("condition", "False")},
    "if a:\n    b": {("condition", "True"), ("condition", "False")},
    "if TYPE_CHECKING:\n    import a": set(),
    "f(a)": {("call", "pass")},
    "await f(a)": set(),
    "x = f(a, b=c, **d)": {("keyword", "f(a, **d)")},
    "raise Gone('text')": {("raise", "pass")},
    "_log.warning('text', 1)": set(),
    "x = ConfigError('text')": set(),
    "x: Literal['a']": set(),
    "'docstring'": set(),
    "return a": {("return", "return None")},
}


def _sites(source: str) -> set[tuple[str, str]]:
    return {(site.operator, site.after) for site in SourceFile(source).sites}


def _in_function(statement: str, returns: str = "int") -> str:
    body = statement.replace("\n", "\n    ")
    return f"async def function() -> {returns}:\n    {body}\n"


@each_case("statement", _MUTATIONS)
def test_statement_has_the_mutations_of_its_operators(statement: str) -> None:
    assert _sites(_in_function(statement)) == _MUTATIONS[statement]


@each_case("returns", ["None", "int | None", "Optional[int]", "Any"])
def test_return_where_none_is_declared_is_not_mutated(returns: str) -> None:
    assert _sites(_in_function("return a", returns)) == set()


def test_repr_is_not_mutated() -> None:
    assert _sites("class A:\n    def __repr__(self) -> str:\n        return f(a < b)\n") == set()


def test_mutated_code_differs_in_the_mutated_place_alone() -> None:
    source = "LIMIT = 1\n\ndef is_below(count: int) -> bool:\n    return count < LIMIT\n"
    file = SourceFile(source)
    site = next(site for site in file.sites if site.operator == "comparison")
    namespace: dict[str, Any] = {}
    exec(file.mutate(site, "limits.py"), namespace)
    assert [namespace["is_below"](count) for count in (0, 1, 2)] == [True, True, False]


def _mutant(source: str, operator: str, file: str = "gateway/limits.py") -> Mutant:
    site = next(site for site in SourceFile(source).sites if site.operator == operator)
    return Mutant(
        file=file,
        scope=site.scope,
        fingerprint=site.fingerprint,
        operator=site.operator,
        ordinal=site.ordinal,
        before=site.before,
        after=site.after,
    )


_SOURCE = dedent(
    """\
    MOST = 10


    def is_allowed(count: int) -> bool:
        return count <= MOST


    def unused(count: int) -> bool:
        return count == 1


    def describe(count: int) -> str:
        return "few" if count < 3 else "many"
    """
)


def test_mutant_whose_lines_have_moved_is_located() -> None:
    site = _mutant(_SOURCE, "comparison").locate(SourceFile(f"import os\n\n{_SOURCE}"))
    assert site is not None
    assert (site.first_line, site.after) == (7, "count < MOST")


def test_mutant_of_a_changed_function_or_a_removed_file_is_stale(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "limits.py").write_text(
        _SOURCE.replace("<= MOST", "<= MOST + 0"), encoding="utf-8"
    )
    changed, kept = _mutant(_SOURCE, "comparison"), _mutant(_SOURCE, "integer")
    removed = _mutant(_SOURCE, "integer", file="gateway/removed.py")
    assert find_stale(tmp_path, [changed, kept, removed]) == [changed, removed]


def test_sample_has_240_distinct_mutants_of_every_root() -> None:
    mutants = sample.load()
    assert len({mutant.id for mutant in mutants}) == 240
    assert {mutant.file.split("/")[0] for mutant in mutants} == {"gateway", "vendors", "recipient"}


def test_draw_is_reproducible(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "limits.py").write_text(_SOURCE, encoding="utf-8")
    drawn = sample.draw(tmp_path, 3, seed=1)
    assert drawn == sample.draw(tmp_path, 3, seed=1)
    assert len({mutant.scope for mutant in drawn}) == 3


def _result(mutant: Mutant, outcome: MutantStatus) -> Result:
    return Result(id=mutant.id, outcome=outcome, by="", tests=1, seconds=1.0, line=5)


def test_results_are_read_again_but_errors_and_incomplete_lines_are_not_done(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    done, failed, cut = (_mutant(_SOURCE, operator) for operator in ("comparison", "integer", "string"))
    results = Results(path)
    results.add(_result(done, MutantStatus.KILLED))
    results.add(_result(failed, MutantStatus.ERROR))
    with path.open("a", encoding="utf-8") as file:
        file.write(f'{{"id": "{cut.id}", "outc')
    again = Results(path)
    assert [again.is_done(mutant) for mutant in (done, failed, cut)] == [True, False, False]


def test_comparison_names_the_mutants_that_one_run_kills_alone() -> None:
    mutants = [_mutant(_SOURCE, operator) for operator in ("comparison", "integer", "string")]
    old = dict(
        zip(
            (m.id for m in mutants),
            (MutantStatus.KILLED, MutantStatus.SURVIVED, MutantStatus.TIMEOUT),
            strict=True,
        )
    )
    new = dict(
        zip(
            (m.id for m in mutants),
            (MutantStatus.NOT_COVERED, MutantStatus.KILLED, MutantStatus.KILLED),
            strict=True,
        )
    )
    by_id = {mutant.id: mutant for mutant in mutants}
    runs = [{id_: _result(by_id[id_], outcome) for id_, outcome in run.items()} for run in (old, new)]
    lines = "\n".join(compare(mutants, *runs))
    first, second = lines.split("killed by the second only")
    assert "the first run kills 2, the second 2" in lines
    assert mutants[0].id in first
    assert mutants[1].id in second
    assert mutants[2].id not in lines
    assert "killed 2 of 3; 0 of the sample have no result" in "\n".join(summarise(mutants, runs[0]))


@pytest.mark.slow
def test_run_of_a_tree_kills_what_its_tests_check_and_nothing_else(tmp_path: Path) -> None:
    files = {
        "gateway/__init__.py": "",
        "gateway/limits.py": _SOURCE,
        "tests/__init__.py": "",
        "tests/conftest.py": """
            import pytest

            def pytest_collection_modifyitems(items):
                for item in items:
                    item.add_marker("fast")

            def pytest_configure(config):
                config.addinivalue_line("markers", "fast: all of them")
            """,
        "tests/test_limits.py": """
            from gateway import limits

            def test_limit():
                assert limits.is_allowed(10)
                assert not limits.is_allowed(11)

            def test_description_has_no_check():
                limits.describe(1)

            def test_failure_is_not_recorded():
                assert limits.describe(1) == "wrong"
            """,
        "pyproject.toml": """
            [tool.pytest.ini_options]
            asyncio_default_fixture_loop_scope = "function"
            """,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text), encoding="utf-8")
    record(tmp_path, tmp_path / "recorded")
    mutants = {
        (site.scope, site.operator, site.after): Mutant(
            file="gateway/limits.py",
            scope=site.scope,
            fingerprint=site.fingerprint,
            operator=site.operator,
            ordinal=site.ordinal,
            before=site.before,
            after=site.after,
        )
        for site in SourceFile(_SOURCE).sites
    }
    expected = {
        ("is_allowed", "comparison", "count < MOST"): MutantStatus.KILLED,
        ("<module>", "integer", "11"): MutantStatus.KILLED,
        ("describe", "comparison", "count <= 3"): MutantStatus.SURVIVED,
        ("unused", "comparison", "count != 1"): MutantStatus.NOT_COVERED,
    }
    runner = Runner(tmp_path, Recording(tmp_path, tmp_path / "recorded"), processes=2)
    found = {result.id: result for result in runner.run([mutants[key] for key in expected])}
    assert {key: found[mutants[key].id].outcome for key in expected} == expected
    assert (
        found[mutants["is_allowed", "comparison", "count < MOST"].id].by == "tests/test_limits.py::test_limit"
    )
