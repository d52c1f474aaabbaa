from __future__ import annotations

import ast

from tests.oracles.fixtures import GENERATORS
from tests.repository import ROOT


def test_cache_key_of_spark_tables_covers_every_module_that_writes_them():
    found, pending = set(), ["tests/oracles/spark_tables.py"]
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += _imported_tests(file)
    # The plan's one value that matters is part of the key.
    assert found - set(GENERATORS) == {"tests/oracles/plan.py"}


def _imported_tests(file: str) -> list[str]:
    tree = ast.parse((ROOT / file).read_text())
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [f"{module.replace('.', '/')}.py" for module in modules if module.startswith("tests.")]
