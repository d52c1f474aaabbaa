"""The keys of each section, as the schema declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from gateway.config.section import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key of a section."""

    # As in the file, and as a part of an environment variable's name.
    key: str
    variable: str
    # The section that stands there, alone or many times in a list.
    section: type[Section] | None
    is_list: bool
    is_nullable: bool
    is_required: bool
    # The keys of a mapping whose keys are fixed though it is not a section.
    members: tuple[str, ...] = ()


@cache
def outline(section: type[Section]) -> Mapping[str, Entry]:
    """Return the entries of a section by key."""
    return {entry.key: entry for entry in map(_entry, *zip(*section.model_fields.items(), strict=True))}


def _entry(name: str, field: Any) -> Entry:
    types = _alternatives(field.annotation)
    items = [get_args(type_)[0] for type_ in types if get_origin(type_) is tuple]
    sections = [type_ for type_ in (*types, *items) if _is_section(type_)]
    return Entry(
        key=field.alias or name,
        variable=name.upper(),
        section=sections[0] if sections else None,
        is_list=bool(items),
        is_nullable=NoneType in types,
        is_required=field.is_required(),
        members=_members(types),
    )


def _alternatives(annotation: Any) -> list[Any]:
    """Return the types of a union, without their annotations."""
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return [type_ for part in get_args(annotation) for type_ in _alternatives(part)]
    return [annotation]


def _is_section(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Section)


def _members(types: list[Any]) -> tuple[str, ...]:
    for type_ in types:
        key = get_args(type_)[0] if get_origin(type_) is Mapping else None
        if isinstance(key, type) and issubclass(key, StrEnum):
            return tuple(member.value for member in key)
    return ()
