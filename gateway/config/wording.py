"""Pydantic's complaints in our own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic_core import ErrorDetails

from gateway.config.nearest import nearest
from gateway.config.path import Path
from gateway.config.report import Report

_NUMBER: Final = "must be a whole number"
_BOOLEAN: Final = "must be true or false"
_CHOICE: Final = "must be one of {expected}"
_WORDS: Final = {
    "missing": "is missing",
    "string_type": "must be a text",
    "string_sub_type": "must be a text",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "int_type": _NUMBER,
    "int_parsing": _NUMBER,
    "int_parsing_size": _NUMBER,
    "int_from_float": _NUMBER,
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "enum": _CHOICE,
    "literal_error": _CHOICE,
    "tuple_type": "must be a list",
    "mapping_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "value_error": "{error}",
}


def report_errors(errors: Sequence[ErrorDetails], data: Any, report: Report) -> list[Path]:
    """Report validation errors and return where in the data they are."""
    paths = []
    for error in errors:
        path = _place(error, data)
        paths.append(path)
        message = _WORDS.get(error["type"], "is not allowed here").format(**_facts(error))
        if error["type"] == "missing":
            report.fault(path, message)
        else:
            report.fault(path, message, error["input"], _suggestion(error))
    return paths


def _place(error: ErrorDetails, data: Any) -> Path:
    """Return the error's path as far as it exists; pydantic appends which part of a union it tried."""
    path: list[str | int] = []
    for step in error["loc"]:
        if isinstance(data, dict) and step in data:
            data = data[str(step)]
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step]
        elif error["type"] != "missing" or step != error["loc"][-1]:
            break
        path.append(step)
    return tuple(path)


def _facts(error: ErrorDetails) -> dict[str, str]:
    facts = {name: str(fact) for name, fact in error.get("ctx", {}).items()}
    return facts | {"expected": facts.get("expected", "").replace("'", "")}


def _suggestion(error: ErrorDetails) -> str:
    choices = _facts(error)["expected"].replace(" or ", ", ").split(", ")
    return nearest(error["input"], choices) if isinstance(error["input"], str) else ""
