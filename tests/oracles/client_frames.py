"""Runs in the official client's environment: calls in, the rows of frames out, a line of JSON each."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import delta_sharing
import pandas as pd

from tests.oracles.plain import spell_rows


def load(address: str, **options: Any) -> dict[str, Any]:
    return _contents(delta_sharing.load_as_pandas(address, **options))


def load_changes(address: str, **options: Any) -> dict[str, Any]:
    return _contents(delta_sharing.load_table_changes_as_pandas(address, **options))


def version_at(address: str, starting_timestamp: str) -> int:
    version: int = delta_sharing.get_table_version(address, starting_timestamp)
    return version


def _contents(frame: pd.DataFrame) -> dict[str, Any]:
    columns = list(frame.columns)
    return {"columns": columns, "rows": spell_rows(columns, frame.itertuples(index=False, name=None))}


CALLS = {call.__name__: call for call in (load, load_changes, version_at)}


def main() -> None:
    answers = sys.stdout
    # The client prints what it likes; only answers belong on our output.
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            answers.write(json.dumps(_answer(json.loads(line))) + "\n")
            answers.flush()


def _answer(call: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"result": CALLS[call["call"]](*call["arguments"], **call["options"])}
    except BaseException as exc:  # noqa: BLE001 -- a panic of the kernel is no Exception
        return {"error": f"{type(exc).__name__}: {exc}"}


if __name__ == "__main__":
    main()
