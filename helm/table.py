"""The table of values in the chart's README."""

from __future__ import annotations

import json
from typing import Final

from helm.values import CHART, Value, read_values, walk

README: Final = CHART / "README.md"
_BEGIN: Final = "<!-- values: made by `python -m helm` -->\n"
_END: Final = "<!-- end of values -->"


def readme() -> str:
    """Return the README with a fresh table."""
    head, _, rest = README.read_text("utf-8").partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    rows = [_row(path, value) for path, value in walk(read_values())]
    table = "\n".join(["| value | meaning | default |", "| --- | --- | --- |", *rows])
    return f"{head}{_BEGIN}{table}\n{_END}{tail}"


def _row(path: str, value: Value) -> str:
    default = "" if value.children else f"`{json.dumps(value.default, ensure_ascii=False)}`"
    return f"| `{path}` | {value.comment.replace('|', chr(92) + '|')} | {default} |"
