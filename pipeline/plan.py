"""Plans: what a job is given, read from JSON into frozen types that say what must be there."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from gateway.errors import InvalidArgument

Plan = TypeVar("Plan")


def read_plan(kind: type[Plan], values: object, *, name: str = "plan") -> Plan:
    """Read a JSON object into a dataclass of plain values, enums, tuples, mappings and further dataclasses.

    A field without a default must be there, one that the type does not have must not. ``name`` is what the
    object is called in errors.
    """
    given = _mapping(values, name)
    declared: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key in given:
        if key not in declared:
            raise InvalidArgument(f"{name}.{key} is not known")
    annotations = typing.get_type_hints(kind)
    read = {
        key: _read(annotations[key], given[key], f"{name}.{key}")
        for key, field in declared.items()
        if key in given or _must_be_there(field, f"{name}.{key}")
    }
    return kind(**read)


def _must_be_there(field: Field[Any], path: str) -> bool:
    if field.default is MISSING and field.default_factory is MISSING:
        raise InvalidArgument(f"{path} is missing")
    return False


def _read(annotation: Any, value: object, path: str) -> Any:
    origin = typing.get_origin(annotation)
    if origin is not None:
        return _CONTAINERS[origin](typing.get_args(annotation), value, path)
    if is_dataclass(annotation):
        return read_plan(typing.cast("type[Any]", annotation), value, name=path)
    if annotation is Any:
        return value
    if issubclass(annotation, Enum):
        return _read_enum(annotation, value, path)
    return _read_plain(annotation, value, path)


def _read_optional(arguments: tuple[Any, ...], value: object, path: str) -> Any:
    if value is None:
        return None
    (annotation,) = (each for each in arguments if each is not types.NoneType)
    return _read(annotation, value, path)


def _read_tuple(arguments: tuple[Any, ...], value: object, path: str) -> Any:
    return tuple(_read(arguments[0], item, f"{path}[{at}]") for at, item in enumerate(_list(value, path)))


def _read_mapping(arguments: tuple[Any, ...], value: object, path: str) -> Any:
    return {key: _read(arguments[1], item, f"{path}.{key}") for key, item in _mapping(value, path).items()}


_CONTAINERS: Final[dict[Any, Callable[[tuple[Any, ...], object, str], Any]]] = {
    types.UnionType: _read_optional,
    tuple: _read_tuple,
    Mapping: _read_mapping,
}


def _read_enum(kind: type[Enum], value: object, path: str) -> Enum:
    try:
        return kind(value)
    except ValueError as exc:
        raise InvalidArgument(f"{path} is none of {', '.join(each.value for each in kind)}") from exc


_NAMES: Final[dict[Any, str]] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
}


def _read_plain(annotation: Any, value: object, path: str) -> Any:
    # A truth value is a number to Python, and not to JSON.
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if annotation is float and is_number:
        return float(typing.cast("int", value))
    if type(value) is not annotation:
        raise InvalidArgument(f"{path} is not {_NAMES[annotation]}")
    return value


def _mapping(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{path} is not an object")
    return value


def _list(value: object, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidArgument(f"{path} is not a list")
    return value
