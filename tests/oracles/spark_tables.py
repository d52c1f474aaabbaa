"""Runs in the clients' environment: Spark writes all tables of the plan, and says what is in each version.

Arguments: the directory of Spark's jars, the directory to write to, and names of tables (all, by default).
"""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import gc
import json
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

from tests.oracles.feature_tables import FEATURE_TABLES
from tests.oracles.plan import TABLES
from tests.oracles.random_history import write_history
from tests.oracles.spark_session import start_session
from tests.oracles.spark_table import SparkTable, always

DONE = "done.json"
# Spark plans on one thread: two tables at a time keep two cores busy.
_AT_A_TIME = 2


def main(jars: Path, directory: Path, names: list[str]) -> None:
    spark = start_session(jars, directory / "scratch")
    # Few sessions for many tables: threads of Spark's keep hold of every one that there ever was.
    sessions: SimpleQueue[SparkSession] = SimpleQueue()
    for _ in range(_AT_A_TIME):
        sessions.put(spark.newSession())
    write = inheritable_thread_target(spark)(partial(_write, sessions, directory))
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        written = {name: pool.submit(write, name) for name in names}
    spark.stop()
    elapsed = {name: result.result() for name, result in written.items()}
    (directory / f"{DONE}.new").write_text(json.dumps(elapsed))
    (directory / f"{DONE}.new").rename(directory / DONE)
    # Whoever started this ends it.
    signal.pause()


def _write(sessions: SimpleQueue[SparkSession], directory: Path, name: str) -> float:
    """Write a table and return how many seconds that took."""
    started_at = time.monotonic()
    session = sessions.get()
    try:
        _write_table(session, directory, name)
    except Exception as exc:
        # Told at once, with the table's name: a test run waits for this.
        exc.add_note(f"writing {name}")
        traceback.print_exc()
        raise
    finally:
        sessions.put(session)
        # Handles of Java's objects refer to themselves: till they are collected, Spark keeps every plan.
        gc.collect()
    return time.monotonic() - started_at


def _write_table(session: SparkSession, directory: Path, name: str) -> None:
    session._jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
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
