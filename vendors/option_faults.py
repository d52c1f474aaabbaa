"""What pydantic says against a storage entry's options, in our words and at the option itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.ports import OptionFault

Path = tuple[str | int, ...]

_KIND: Final = "kind"
_IDENTITY: Final = "identity"
_MAPPING: Final = "must be a mapping of keys to values"
_WORDS: Final = {
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "greater_than": "must be more than {gt}",
    "literal_error": "must be {expected}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
}
_BOOLEANS: Final = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Disagreement(ValueError):
    """Values that do not go together."""

    def __init__(self, faults: Sequence[OptionFault]) -> None:
        super().__init__("options do not go together")
        self.faults = tuple(faults)


def to_faults(
    model: type[BaseModel], exc: ValidationError, options: Mapping[str, object]
) -> list[OptionFault]:
    """Return the faults, one for each option."""
    found: dict[Path, OptionFault] = {}
    missing: set[Path] = set()
    for error in exc.errors(include_url=False):
        place = _find(model, error["loc"], options)
        if error["type"] == "missing":
            missing.add(place.path)
        for fault in () if place.is_other_part else _faults(place, error):
            found.setdefault(fault.path, fault)
    # An option that is misspelt is not missing too.
    misspelt = {(*path[:-1], fault.suggestion) for path, fault in found.items() if fault.suggestion}
    return [fault for path, fault in found.items() if path not in missing & misspelt]


@dataclass(slots=True)
class _Place:
    """Where an error's path has led so far."""

    path: Path
    # What may stand here; empty for what the model does not know.
    types: list[Any]
    value: object
    # The mapping that the last step was taken in.
    around: type[BaseModel]
    # Whether pydantic also tried what a mapping cannot have been meant to be.
    is_other_part: bool = False

    @property
    def models(self) -> list[type[BaseModel]]:
        return [type_ for type_ in self.types if isinstance(type_, type) and issubclass(type_, BaseModel)]

    @property
    def kinds(self) -> list[str]:
        return [kind for model in self.models for kind in _kinds(model)]

    @property
    def is_secret(self) -> bool:
        return any({"value", "file"} == set(model.model_fields) for model in self.models)


def _find(model: type[BaseModel], loc: Sequence[str | int], options: object) -> _Place:
    """Follow an error's path; pydantic names on it, too, which part of a union it tried."""
    place = _Place(path=(), types=[model], value=options, around=model)
    steps = list(loc)
    while steps:
        if len(place.types) > 1:
            _choose(place, str(steps.pop(0)))
        if steps:
            _step(place, steps.pop(0))
    return place


def _choose(place: _Place, label: str) -> None:
    chosen = [model for model in place.models if label in _kinds(model) or model.__name__ in label]
    # What is no mapping is told of once, for all that it could be.
    if isinstance(place.value, Mapping):
        place.types = chosen[:1]
        place.is_other_part = not chosen


def _step(place: _Place, step: str | int) -> None:
    place.path = (*place.path, step)
    if isinstance(step, int):
        place.types = [inner for type_ in place.types for inner in get_args(type_)[:1]]
        place.value = None
        return
    if place.models:
        place.around = place.models[0]
    field = _fields(place.around).get(step)
    place.types = [] if field is None else _alternatives(field.annotation)
    place.value = place.value.get(step) if isinstance(place.value, Mapping) else None


def _faults(place: _Place, error: ErrorDetails) -> Iterator[OptionFault]:
    type_, facts = error["type"], error.get("ctx", {})
    wrong = facts.get("error")
    if isinstance(wrong, Disagreement):
        for fault in wrong.faults:
            yield OptionFault(path=(*place.path, *fault.path), message=fault.message)
    elif type_ == "extra_forbidden":
        yield _unknown(place)
    elif type_ == "missing":
        yield OptionFault(path=place.path, message=f"is missing{_what_is_missing(place)}")
    elif type_.startswith("union_tag"):
        yield _wrong_kind(place, error["input"])
    elif wrong is not None:
        yield OptionFault(path=place.path, message=str(wrong))
    else:
        yield OptionFault(
            path=place.path, message=_words(place, error), suggestion=_suggestion(place, error["input"])
        )


def _unknown(place: _Place) -> OptionFault:
    known = list(_fields(place.around))
    meant = _nearest(str(place.path[-1]), known)
    message = "unknown option" if meant else f"unknown option; known are {', '.join(known)}"
    return OptionFault(path=place.path, message=message, suggestion=meant)


def _what_is_missing(place: _Place) -> str:
    if place.kinds:
        return f": it says who the gateway is; its kind is {_one_of(place.kinds)}"
    if place.path[-1:] == (_KIND,):
        return f": {_one_of(_kinds(place.around))}"
    return f": {_secret_words(place)}" if place.is_secret else ""


def _wrong_kind(place: _Place, value: object) -> OptionFault:
    given = value.get(_KIND) if isinstance(value, Mapping) else None
    words = "is missing: give" if given is None else "must be"
    return OptionFault(
        path=(*place.path, _KIND),
        message=f"{words} {_one_of(place.kinds)}",
        suggestion=_nearest(given, place.kinds) if isinstance(given, str) else "",
    )


def _words(place: _Place, error: ErrorDetails) -> str:
    facts = {name: str(fact) for name, fact in error.get("ctx", {}).items()}
    if place.is_secret:
        return _secret_words(place)
    if place.kinds:
        says = " that says who the gateway is" if place.path[-1:] == (_IDENTITY,) else ""
        return f"must be a mapping{says}; its kind is {_one_of(place.kinds)}"
    if place.models:
        return _MAPPING
    if error["type"] == "string_type":
        is_scalar = isinstance(error["input"], int | float)
        return "must be a text: put it in quotes" if is_scalar else "must be a text"
    facts["expected"] = _one_of(_choices(place))
    return _WORDS.get(error["type"], "is not allowed here").format(**facts)


def _secret_words(place: _Place) -> str:
    return "give a text, or {file: PATH}" if str in place.types else "give {file: PATH} or {value: TEXT}"


def _suggestion(place: _Place, value: object) -> str:
    if not isinstance(value, str):
        return ""
    if bool in place.types:
        return _BOOLEANS.get(value.lower()) or _nearest(value, ["true", "false"])
    return _nearest(value, _choices(place))


def _choices(place: _Place) -> list[str]:
    return [
        str(choice) for type_ in place.types if get_origin(type_) is Literal for choice in get_args(type_)
    ]


def _kinds(model: type[BaseModel]) -> list[str]:
    field = model.model_fields.get(_KIND)
    return [] if field is None else [str(kind) for kind in get_args(field.annotation)]


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _alternatives(annotation: Any) -> list[Any]:
    """Return the types of a union, without their annotations and without None."""
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return [type_ for part in get_args(annotation) for type_ in _alternatives(part)]
    return [] if annotation is NoneType else [annotation]


def _one_of(names: Sequence[str]) -> str:
    return f"one of {', '.join(names)}" if len(names) > 1 else "".join(names)


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = {_fold(candidate): candidate for candidate in known}
    matches = get_close_matches(_fold(name), folded, n=1)
    return folded[matches[0]] if matches else ""


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
