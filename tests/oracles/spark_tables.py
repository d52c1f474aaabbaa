"""Runs in the clients' environment: Spark writes all tables of the plan, and says what is in each version.

Arguments: the directory of Spark's jars, the directory to write to, and names of tables (all, by default).
"""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import gc
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tests.oracles.feature_tables import FEATURE_TABLES
from tests.oracles.plan import TABLES
from tests.oracles.random_history import write_history
from tests.oracles.spark_session import start_session
from tests.oracles.spark_table import SparkTable, always

# Spark plans on one thread: two keep two cores busy. In one JVM they would make it keep every plan there was.
_SESSIONS = 2


def main(jars: Path, directory: Path, names: list[str]) -> None:
    with ProcessPoolExecutor(
        _SESSIONS,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start_session,
        initargs=(jars, directory / "scratch"),
    ) as pool:
        for name in pool.map(partial(_write, directory), names):
            print(name, flush=True)  # noqa: T201  # progress, in the log


def _write(directory: Path, name: str) -> str:
    """Write a table and return its name."""
    try:
        _write_table(SparkSession.active(), directory, name)
    except Exception as exc:
        exc.add_note(f"writing {name}")
        raise
    finally:
        # Handles of Java's objects refer to themselves: till they are collected, Spark keeps the objects.
        gc.collect()
    return name


def _write_table(session: SparkSession, directory: Path, name: str) -> None:
    history = name.removeprefix("history_")
    table = SparkTable(session, directory / name, wants_rows=_some if history.isdigit() else always)
    if history.isdigit():
        write_history(table, int(history))
    else:
        FEATURE_TABLES[name](table)
    table.save()
    table.close()


def _some(version: int) -> bool:
    # Where the live files are the same, so are the rows: some are enough.
    return version % 4 == 3 or version >= 12


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(TABLES))
