"""The Accept-Encoding header: in which codings a client can read an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Coding(StrEnum):
    """What an answer can be sent as. The first of them is taken where a client likes several equally well."""

    ZSTD = "zstd"
    GZIP = "gzip"
    IDENTITY = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a client said of codings. Nothing said: as it is, as many such clients can read nothing else."""

    best: Coding = Coding.IDENTITY
    # Whether an answer may also come as it is.
    plain: bool = True


_ITEM: Final = re.compile(
    r"[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*"
    r"(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[ \t]*)?"
)
_NAMES: Final = {"x-gzip": Coding.GZIP.value}
_ANY: Final = "*"
# Less than the least that a client can say: what it does not mention is taken where nothing else is.
_UNMENTIONED: Final = 0.0001


def parse(headers: Sequence[str]) -> Accepted:
    """Read the values of all such headers; what is unknown or malformed is left out."""
    weights = dict(_weights(headers))
    if not weights:
        return Accepted()
    rated = {coding: _weight(coding, weights) for coding in Coding}
    best = max(rated, key=lambda coding: rated[coding])
    # Nothing that we have is accepted: an answer as it is helps more than none.
    if not rated[best]:
        return Accepted()
    return Accepted(best=best, plain=rated[Coding.IDENTITY] > 0)


def _weights(headers: Sequence[str]) -> Sequence[tuple[str, float]]:
    matches = (_ITEM.fullmatch(part) for part in ",".join(headers).split(","))
    named = ((match[1].lower(), float(match[2] or 1)) for match in matches if match)
    return [(_NAMES.get(name, name), weight) for name, weight in named]


def _weight(coding: Coding, weights: Mapping[str, float]) -> float:
    """Return what a client gives for a coding; ``*`` stands for those that every client knows."""
    if coding in weights:
        return weights[coding]
    if coding is Coding.ZSTD:
        return 0
    return weights.get(_ANY, _UNMENTIONED if coding is Coding.IDENTITY else 0)
