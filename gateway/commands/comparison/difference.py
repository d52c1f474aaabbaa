"""Tells how two servers' answers about the same thing differ. Pure: reads nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gateway.commands.comparison.answer import Json, TableAnswer
from gateway.commands.comparison.client import Refused, SharingError
from gateway.commands.comparison.values import MISSING, differences, given, parse_json
from gateway.domain.name import fold


class Weight(StrEnum):
    DIFFERENCE = "difference"
    # Not the same words, but the same meaning to the protocol.
    NOTE = "note"
    # The new server says more than the old one, which no client minds.
    ONLY_IN_NEW = "only in new"


class Presence(StrEnum):
    """What it means when only one server gives a field."""

    # A difference, whichever it is.
    REQUIRED = "required"
    # Something that clients of the old server may rely on, and the new one may add.
    OPTIONAL = "optional"
    # Compared where both give it.
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One way in which the servers differ. ``detail`` says it where two values do not."""

    weight: Weight = Weight.DIFFERENCE
    # A share or a table: "share sales", "table sales.q1.orders".
    subject: str
    what: str
    old: object = MISSING
    new: object = MISSING
    detail: str = ""


SHARE_FIELDS: Final = {
    "id": Presence.BOTH,
    "displayName": Presence.OPTIONAL,
    "comment": Presence.OPTIONAL,
    "properties": Presence.OPTIONAL,
}
TABLE_FIELDS: Final = {
    "id": Presence.BOTH,
    "shareId": Presence.BOTH,
    "location": Presence.OPTIONAL,
    "auxiliaryLocations": Presence.OPTIONAL,
    "accessModes": Presence.OPTIONAL,
}
METADATA_FIELDS: Final = {
    "id": Presence.REQUIRED,
    "name": Presence.REQUIRED,
    "description": Presence.REQUIRED,
    "format": Presence.REQUIRED,
    "schemaString": Presence.REQUIRED,
    "partitionColumns": Presence.REQUIRED,
    "configuration": Presence.REQUIRED,
    "createdTime": Presence.OPTIONAL,
    "version": Presence.OPTIONAL,
    "size": Presence.OPTIONAL,
    "numFiles": Presence.OPTIONAL,
    "location": Presence.OPTIONAL,
    "auxiliaryLocations": Presence.OPTIONAL,
    "accessModes": Presence.OPTIONAL,
}
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def compare_fields(
    subject: str, prefix: str, old: Json, new: Json, fields: Mapping[str, Presence]
) -> Iterator[Finding]:
    """Compare two objects field by field; fields that are not named are ignored."""
    for name, presence in fields.items():
        here, there = given(old, name, _EMPTY), given(new, name, _EMPTY)
        what = f"{prefix}{name}"
        if here is MISSING and there is MISSING:
            continue
        if (here is MISSING or there is MISSING) and presence is not Presence.REQUIRED:
            yield Finding(
                weight=_one_sided(presence, only_in_new=here is MISSING),
                subject=subject,
                what=what,
                old=here,
                new=there,
            )
            continue
        for path, one, other in differences(_keyed(here, there), _keyed(there, here), what):
            yield Finding(subject=subject, what=path, old=one, new=other)


def compare_names(subject: str, what: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Finding]:
    """Compare two lists of names, which are the same in any case; ``what`` is what they are names of."""
    olds, news = _by_folded_name(old), _by_folded_name(new)
    for key in sorted(olds.keys() | news.keys()):
        if key not in news:
            yield Finding(subject=subject, what=f"{what} {olds[key]}", detail="only in old")
        elif key not in olds:
            yield Finding(subject=subject, what=f"{what} {news[key]}", detail="only in new")
        elif olds[key] != news[key]:
            yield Finding(
                weight=Weight.NOTE, subject=subject, what=f"{what} name", old=olds[key], new=news[key]
            )


def compare_answers(
    subject: str, call: str, old: object, new: object
) -> tuple[list[Finding], tuple[Any, Any] | None]:
    """Sort out errors: return what they say, and both answers when there are two to compare."""
    here, there = isinstance(old, SharingError), isinstance(new, SharingError)
    if not here and not there:
        return [], (old, new)
    alike = here and there and _status(old) == _status(new)
    finding = Finding(
        weight=Weight.NOTE if alike else Weight.DIFFERENCE,
        subject=subject,
        what=call,
        detail=f"{_outcome(old)} in old, {_outcome(new)} in new",
    )
    return [finding], None


def compare_metadata(subject: str, old: TableAnswer, new: TableAnswer) -> Iterator[Finding]:
    if old.format != new.format:
        # Hardly a word of one is in the other.
        detail = "files and protocol are not compared"
        yield Finding(subject=subject, what="response format", old=old.format, new=new.format, detail=detail)
        return
    for path, one, other in differences(old.protocol, new.protocol, "protocol"):
        yield Finding(subject=subject, what=path, old=one, new=other)
    yield from compare_fields(
        subject, "metaData.", _with_schema(old.metadata), _with_schema(new.metadata), METADATA_FIELDS
    )


def compare_heads(
    subject: str, old: tuple[TableAnswer, TableAnswer], new: tuple[TableAnswer, TableAnswer]
) -> Iterator[Finding]:
    """Find a new server whose query answer begins unlike its metadata answer: clients compare the two."""
    agree = [one.protocol == two.protocol and one.metadata == two.metadata for one, two in (old, new)]
    if agree == [True, False]:
        yield Finding(
            subject=subject,
            what="query",
            detail="protocol and metaData equal those of the metadata call in old, but not in new",
        )


def _keyed(value: object, other: object) -> object:
    """Return an absent object as an empty one, so that it is compared key by key."""
    return {} if value is MISSING and isinstance(other, Mapping) else value


def _one_sided(presence: Presence, *, only_in_new: bool) -> Weight:
    if only_in_new:
        return Weight.ONLY_IN_NEW
    return Weight.NOTE if presence is Presence.BOTH else Weight.DIFFERENCE


def _by_folded_name(names: Iterable[str]) -> dict[str, str]:
    return {fold(name): name for name in names}


def _status(answer: object) -> object:
    return answer.status if isinstance(answer, Refused) else type(answer)


def _outcome(answer: object) -> str:
    return str(answer) if isinstance(answer, SharingError) else "answered"


def _with_schema(metadata: Json) -> Json:
    text = metadata.get("schemaString")
    return {**metadata, "schemaString": parse_json(text)} if isinstance(text, str) else metadata
